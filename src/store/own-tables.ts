// The tables of the service itself, beside those of the models.
import { StartFaults } from '../errors.js'
import { COUNT_TABLE, VALUE_COUNT_TABLE } from './counted-fields.js'
import type { Database, Dialect, Transaction } from './database.js'
import { DELIVERY_TABLE } from './deliveries.js'
import { EPOCH_TABLE } from './epoch.js'
import { FILE_TABLE } from './files.js'
import { FORMER_ADMIN_TABLE } from './former-admins.js'
import { FORMER_FIELD_TABLE } from './former-fields.js'
import { LOG_TABLE } from './log.js'
import { RESET_LINK_TABLE } from './reset-links.js'
import { SEQUENCE_TABLE } from './sequences.js'
import { WEBHOOK_TABLE } from './webhooks.js'

/** Waits for other nodes that are starting, then makes what is not there. */
export async function makeOwnTables(tx: Transaction, dialect: Dialect): Promise<void> {
  for (const lock of dialect.lockSchema) await tx.run(lock)
  await prepareEngine(tx, dialect)
  for (const [name, columns] of Object.entries(ownTables(dialect))) {
    await tx.run(`create table if not exists ${name} (${columns.join(', ')})${dialect.tableSuffix}`)
  }
  for (const [name, columns] of Object.entries(counterTables(dialect))) {
    await tx.run(`create table if not exists ${name} (${columns.join(', ')})${dialect.counterSuffix}`)
  }
  await addLaterColumns(tx, dialect)
  for (const create of dialect.contentTables) await tx.run(create)
  await tx.run(`create index if not exists verso_log_at on ${LOG_TABLE} (at_ms)`)
  await tx.run('create index if not exists verso_session_user on verso_session (user_id)')
  await tx.run(`create index if not exists verso_webhook_delivery_of on ${DELIVERY_TABLE} (webhook, id)`)
  await tx.run('create index if not exists verso_idempotency_created on verso_idempotency (created_ms)')
}

/** Whether a service has been here before. */
export async function hasOwnTables({ reader, dialect }: Database): Promise<boolean> {
  return (await reader.all(dialect.findColumn, ['verso_schema', 'model'])).length > 0
}

/** Of tables that were once made without them. They may be null: an older node beside this one does not know them. */
const LATER_COLUMNS = [
  { table: 'verso_session', column: 'address', type: 'text' },
  { table: 'verso_session', column: 'agent', type: 'text' },
  { table: 'verso_idempotency', column: 'epoch', type: 'integer' },
  { table: LOG_TABLE, column: 'purged', type: 'integer' },
] as const

async function addLaterColumns(tx: Transaction, { columns, findColumn }: Dialect): Promise<void> {
  for (const { table, column, type } of LATER_COLUMNS) {
    if ((await tx.all(findColumn, [table, column])).length === 0)
      await tx.run(`alter table ${table} add column ${column} ${columns[type].type}`)
  }
}

async function prepareEngine(tx: Transaction, { obstacles, setUp }: Dialect): Promise<void> {
  for (const obstacle of obstacles) {
    const faults = (await tx.all(obstacle)).map((row) => String(row['fault']))
    if (faults.length > 0) throw new StartFaults('The database cannot be used', faults)
  }
  for (const { unless, make } of setUp) {
    if ((await tx.all(unless)).length === 0) await tx.run(make)
  }
}

function counterTables({ columns }: Dialect): Readonly<Record<string, readonly string[]>> {
  const [text, integer] = [columns.text.type, columns.integer.type]
  return {
    [COUNT_TABLE]: [
      `model ${text} not null`,
      `level ${integer} not null`,
      `block ${integer} not null`,
      `n ${integer} not null`,
      'primary key (model, level, block)',
    ],
    [VALUE_COUNT_TABLE]: [
      `model ${text} not null`,
      `field ${text} not null`,
      `value ${text} not null`,
      `n ${integer} not null`,
      'primary key (model, field, value)',
    ],
  }
}

function ownTables({ columns, identity }: Dialect): Readonly<Record<string, readonly string[]>> {
  const [text, integer] = [columns.text.type, columns.integer.type]
  return {
    verso_schema: [`model ${text} primary key`, `shape ${text} not null`],
    [LOG_TABLE]: [
      `seq ${identity}`,
      `model ${text} not null`,
      `record ${integer} not null`,
      `version ${integer} not null`,
      `action ${text} not null`,
      `by_user ${integer}`,
      `at_ms ${integer} not null`,
      `changes ${text} not null`,
      // 1 where the values are gone for good.
      `purged ${integer}`,
      // The second lock on versions: whatever else fails, no version of a record is made twice.
      'unique (model, record, version)',
    ],
    [SEQUENCE_TABLE]: [`name ${text} primary key`, `next ${integer} not null`],
    verso_session: [
      `hash ${text} primary key`,
      `user_id ${integer} not null`,
      `created_ms ${integer} not null`,
      `seen_ms ${integer} not null`,
      `address ${text}`,
      `agent ${text}`,
    ],
    [RESET_LINK_TABLE]: [
      `user_id ${integer} primary key`,
      `hash ${text} not null unique`,
      `expires_ms ${integer} not null`,
    ],
    verso_idempotency: [
      `user_id ${integer} not null`,
      `key ${text} not null`,
      `digest ${text} not null`,
      `answer ${text}`,
      // Of the rights that it was made by.
      `epoch ${integer}`,
      `created_ms ${integer} not null`,
      'primary key (user_id, key)',
    ],
    [FILE_TABLE]: [
      `id ${identity}`,
      `key ${text} not null unique`,
      `name ${text} not null`,
      `type ${text} not null`,
      `size ${integer} not null`,
      `sha256 ${text} not null`,
      `created_ms ${integer} not null`,
    ],
    [WEBHOOK_TABLE]: [
      `webhook ${integer} primary key`,
      `position ${integer} not null`,
      `until_seq ${integer}`,
      `failures ${integer} not null`,
      `next_ms ${integer} not null`,
      `lease ${text}`,
      `leased_until_ms ${integer}`,
    ],
    [DELIVERY_TABLE]: [
      `id ${identity}`,
      `webhook ${integer} not null`,
      `message ${text} not null`,
      `first_seq ${integer}`,
      `last_seq ${integer}`,
      `changes ${integer} not null`,
      `attempt ${integer} not null`,
      `at_ms ${integer} not null`,
      `ms ${integer} not null`,
      `status ${integer}`,
      `error ${text}`,
    ],
    [EPOCH_TABLE]: [`name ${text} primary key`, `value ${integer} not null`],
    [FORMER_FIELD_TABLE]: [
      `id ${identity}`,
      `model ${text} not null`,
      `name ${text} not null`,
      `became ${text}`,
      `seq ${integer} not null`,
    ],
    [FORMER_ADMIN_TABLE]: [`user_id ${integer} primary key`, `admin ${integer} not null`],
    verso_login_failure: [
      `key ${text} primary key`,
      `since_ms ${integer} not null`,
      `failures ${integer} not null`,
    ],
  }
}
