// The internal tables: all tables that do not belong to a model.
import { ConfigError } from '../../errors.js'
import { COUNT_TABLE, VALUE_COUNT_TABLE } from '../counters/counted-fields.js'
import type { Database, Dialect, Queryable, Transaction } from '../engine/database.js'
import { DELIVERY_TABLE } from '../webhooks/deliveries.js'
import { HOOK_JOB_TABLE } from '../hooks/jobs.js'
import { HOOK_TABLE, SCHEDULE_TABLE } from '../hooks/leases.js'
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import { ensureDatabaseId } from './database-id.js'
import { FILE_TABLE } from '../records/files.js'
import { FORMER_ADMIN_TABLE } from './former-admins.js'
import { FORMER_FIELD_TABLE } from './former-fields.js'
import { PURGE_TABLE } from '../log/purges.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { RESET_LINK_TABLE } from '../auth/reset-links.js'
import { SEQUENCE_TABLE } from '../records/sequences.js'
import { WEBHOOK_TABLE } from '../webhooks/webhooks.js'

/**
 * The version of the tables in this file. The database stores it, and a start that finds it there runs no DDL: `create index if not
 * exists` locks its table even where the index exists, and so deadlocks with writers that lock two tables in the opposite order.
 *
 * To add a table, a column or an index:
 * 1. Add it to `defineInternalTables`, `defineCounterTables` or `INTERNAL_INDEXES`. Add a column of an existing table to `ADDED_COLUMNS`,
 *    too. It must be nullable.
 * 2. Increment this number. The next start on an older database creates everything that is missing, in one transaction.
 * 3. Add the digest that test/store/internal-tables.test.ts prints for the new number.
 *
 * A program rejects a database with a greater version than its own. A new row in an existing table needs no new version.
 */
export const INTERNAL_TABLES_VERSION = 4

/** The row of VERSIONS_TABLE that stores the version. Databases of releases before version 1 do not have it. */
const TABLES_VERSION_ROW = 'tables'

/** The row of VERSIONS_TABLE that a restore inserts first and deletes last. */
export const RESTORE_ROW = 'restore'

/** The rows of VERSIONS_TABLE that describe a database and not its data. */
export const DATABASE_ROWS = [TABLES_VERSION_ROW, RESTORE_ROW] as const

/** Indexes of the tables in this file, by name. */
const INTERNAL_INDEXES: Readonly<Record<string, string>> = {
  verso_log_at: `${LOG_TABLE} (at_ms)`,
  verso_log_deleted: `${LOG_TABLE} (model, seq) where action = 'delete'`,
  verso_session_user: 'verso_session (user_id)',
  verso_webhook_delivery_of: `${DELIVERY_TABLE} (webhook, id)`,
  verso_idempotency_created: 'verso_idempotency (created_ms)',
  verso_hook_job_due: `${HOOK_JOB_TABLE} (hook, dead, next_ms)`,
  verso_hook_job_record: `${HOOK_JOB_TABLE} (hook, record, seq)`,
}

/** Columns that a later release added to a table. They are nullable because older nodes that still run do not set them. */
const ADDED_COLUMNS = [
  { table: 'verso_session', column: 'address', type: 'text' },
  { table: 'verso_session', column: 'agent', type: 'text' },
  { table: 'verso_idempotency', column: 'epoch', type: 'integer' },
  { table: LOG_TABLE, column: 'purged', type: 'integer' },
] as const

/**
 * Returns true if the internal tables have the version of this program. Only reads. Throws if the version is newer, or if a restore did not
 * finish.
 */
export async function areInternalTablesCurrent(db: Queryable, dialect: Dialect): Promise<boolean> {
  const rows = await readDatabaseRows(db, dialect)
  if (rows.has(RESTORE_ROW))
    throw new ConfigError('The database cannot be used', [
      'a restore into this database runs or did not finish: wait for it, or run verso restore again with the same backup; nothing was changed',
    ])
  const version = rows.get(TABLES_VERSION_ROW) ?? 0
  if (version > INTERNAL_TABLES_VERSION)
    throw new ConfigError('The database cannot be used', [
      `a newer release of Verso has used it: its internal tables have version ${version}, but this release supports ` +
        `versions up to ${INTERNAL_TABLES_VERSION}. Install that release or a later one, or use another database with --db; nothing was changed`,
    ])
  return version === INTERNAL_TABLES_VERSION
}

/** Reads the rows of VERSIONS_TABLE that describe this database; none if there is no such table. */
export async function readDatabaseRows(
  db: Queryable,
  { findColumn }: Dialect,
): Promise<ReadonlyMap<string, number>> {
  if ((await db.all(findColumn, [VERSIONS_TABLE, 'value'])).length === 0) return new Map()
  const marks = DATABASE_ROWS.map(() => '?').join(', ')
  const rows = await db.all(
    `select name, value from ${VERSIONS_TABLE} where name in (${marks})`,
    DATABASE_ROWS,
  )
  return new Map(rows.map((row) => [String(row['name']), Number(row['value'])]))
}

/** Creates missing tables, columns and indexes. Waits for other nodes that do the same. */
export async function createInternalTables(tx: Transaction, dialect: Dialect): Promise<void> {
  for (const lock of dialect.lockSchema) await tx.run(lock)
  if (await areInternalTablesCurrent(tx, dialect)) return
  await prepareEngine(tx, dialect)
  for (const [name, columns] of Object.entries(defineInternalTables(dialect))) {
    await tx.run(`create table if not exists ${name} (${columns.join(', ')})${dialect.tableSuffix}`)
  }
  for (const [name, columns] of Object.entries(defineCounterTables(dialect))) {
    await tx.run(`create table if not exists ${name} (${columns.join(', ')})${dialect.counterSuffix}`)
  }
  await addMissingColumns(tx, dialect)
  for (const create of Object.values(dialect.blobTables)) await tx.run(create)
  await createMissingIndexes(tx, dialect)
  await tx.run(
    `insert into ${VERSIONS_TABLE} (name, value) values ('${TABLES_VERSION_ROW}', ?) on conflict (name) do update set value = excluded.value`,
    [INTERNAL_TABLES_VERSION],
  )
  await ensureDatabaseId(tx)
}

/** Returns true if a service has used the database before. */
export async function hasInternalTables({ reader, dialect }: Database): Promise<boolean> {
  return (await reader.all(dialect.findColumn, ['verso_schema', 'model'])).length > 0
}

async function addMissingColumns(tx: Transaction, { columns, findColumn }: Dialect): Promise<void> {
  for (const { table, column, type } of ADDED_COLUMNS) {
    if ((await tx.all(findColumn, [table, column])).length === 0)
      await tx.run(`alter table ${table} add column ${column} ${columns[type].type}`)
  }
}

/** Checks first whether an index exists, because `create index if not exists` would lock tables that older nodes may still write. */
async function createMissingIndexes(tx: Transaction, { findIndex }: Dialect): Promise<void> {
  for (const [name, columns] of Object.entries(INTERNAL_INDEXES)) {
    if ((await tx.all(findIndex, [name])).length === 0) await tx.run(`create index ${name} on ${columns}`)
  }
}

async function prepareEngine(tx: Transaction, { startupChecks, setUp }: Dialect): Promise<void> {
  for (const obstacle of startupChecks) {
    const errors = (await tx.all(obstacle)).map((row) => String(row['fault']))
    if (errors.length > 0) throw new ConfigError('The database cannot be used', errors)
  }
  for (const { unless, make } of setUp) {
    if ((await tx.all(unless)).length === 0) await tx.run(make)
  }
}

function defineCounterTables({ columns }: Dialect): Readonly<Record<string, readonly string[]>> {
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

/** The definitions of columns, keys and unique sets by table, besides the counters. */
export function defineInternalTables({
  columns,
  identity,
}: Dialect): Readonly<Record<string, readonly string[]>> {
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
      // 1 if the values were purged.
      `purged ${integer}`,
      // The second guard of versions, besides the condition of the UPDATE: no version of a record exists twice.
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
      // The permissions version that the response was made with.
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
    [HOOK_TABLE]: [
      `name ${text} primary key`,
      `position ${integer} not null`,
      `lease ${text}`,
      `leased_until_ms ${integer}`,
    ],
    [HOOK_JOB_TABLE]: [
      `id ${identity}`,
      `hook ${text} not null`,
      `seq ${integer} not null`,
      `record ${integer} not null`,
      `attempts ${integer} not null`,
      `next_ms ${integer} not null`,
      `error ${text}`,
      `dead ${integer} not null`,
      `created_ms ${integer} not null`,
      'unique (hook, seq)',
    ],
    [SCHEDULE_TABLE]: [
      `name ${text} primary key`,
      `interval_ms ${integer} not null`,
      `next_ms ${integer} not null`,
      `lease ${text}`,
      `leased_until_ms ${integer}`,
      `last_ms ${integer}`,
      `error ${text}`,
    ],
    [PURGE_TABLE]: [
      `id ${identity}`,
      `model ${text} not null`,
      `record ${integer} not null`,
      `seq ${integer} not null`,
      `at_ms ${integer} not null`,
      `deleted ${integer} not null`,
      `fields ${text} not null`,
    ],
    [VERSIONS_TABLE]: [`name ${text} primary key`, `value ${integer} not null`],
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
