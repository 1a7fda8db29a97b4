// Runs the steps of a schema plan.
import { ConfigError } from '../../errors.js'
import { getDefaultValue } from '../../model/definition/record-values.js'
import type { JsonColumn } from '../engine/columns.js'
import type { Dialect, Transaction } from '../engine/database.js'
import { UniqueViolation } from '../engine/unique-violation.js'
import { readClock } from '../log/clock.js'
import { findLastLoggedId } from '../log/log.js'
import { rebuildModelCounters, deleteCounters } from '../counters/rebuild.js'
import { toIndexName, quoteIdentifier, toTableName } from '../engine/names.js'
import type { SchemaStep } from './plan.js'
import { toLinkTableName } from '../sql/relation.js'
import { getColumn, encodeValue, toJsonColumn } from '../sql/column.js'
import { listStoredFields } from '../sql/table.js'

export async function applyStep(tx: Transaction, dialect: Dialect, step: SchemaStep): Promise<void> {
  const table = quoteIdentifier(toTableName(step.model))
  switch (step.kind) {
    case 'create-table': {
      await createModelTable(tx, dialect, step.model, listStoredFields(step.declared).map(toJsonColumn))
      return resumeIds(tx, dialect, step.model)
    }
    case 'add-column':
      await tx.run(
        `alter table ${table} add column ${quoteIdentifier(step.field.name)} ${getColumn(dialect, step.field).type}`,
      )
      await fillDefaultValue(tx, dialect, step)
      return
    case 'rename-column':
      await tx.run(
        `alter table ${table} rename column ${quoteIdentifier(step.from)} to ${quoteIdentifier(step.to)}`,
      )
      return
    case 'drop-column':
      await tx.run(`alter table ${table} drop column ${quoteIdentifier(step.name)}`)
      return
    case 'drop-table':
      await tx.run(`drop table ${table}`)
      await deleteCounters(tx, step.model)
      await tx.run('delete from verso_schema where model = ?', [step.model])
      return
    case 'create-index':
      return createIndex(tx, dialect, step)
    case 'drop-index':
      await tx.run(`drop index if exists ${quoteIdentifier(step.name)}`)
      return
    case 'create-link':
      return createLinkTable(tx, dialect, toLinkTableName(step.model, step.field))
    case 'rename-link':
      return renameLinkTable(tx, toLinkTableName(step.model, step.from), toLinkTableName(step.model, step.to))
    case 'drop-link':
      await tx.run(`drop table ${quoteIdentifier(toLinkTableName(step.model, step.field))}`)
      return
    case 'count-records':
      return rebuildModelCounters(tx, dialect, step.declared)
  }
}

/** Creates the table of a model with these columns besides `id` and `version`. */
export async function createModelTable(
  tx: Transaction,
  dialect: Dialect,
  model: string,
  columns: readonly JsonColumn[],
): Promise<void> {
  const own = columns.map(
    ({ name, storage }) => `, ${quoteIdentifier(name)} ${dialect.columns[storage].type}`,
  )
  const definition = `"id" ${dialect.identity}, "version" ${dialect.columns.integer.type} not null${own.join('')}`
  await tx.run(`create table ${quoteIdentifier(toTableName(model))} (${definition})${dialect.tableSuffix}`)
}

export async function createLinkTable(tx: Transaction, dialect: Dialect, name: string): Promise<void> {
  const { type } = dialect.columns.integer
  const columns = `"owner" ${type} not null, "member" ${type} not null, primary key ("owner", "member")`
  await tx.run(`create table ${quoteIdentifier(name)} (${columns})${dialect.tableSuffix}`)
  await createLinkIndex(tx, name)
}

async function renameLinkTable(tx: Transaction, from: string, to: string): Promise<void> {
  await tx.run(`alter table ${quoteIdentifier(from)} rename to ${quoteIdentifier(to)}`)
  await tx.run(`drop index if exists ${quoteIdentifier(toIndexName(from, false, ['member']))}`)
  await createLinkIndex(tx, to)
}

/** The index finds the owners of a member. */
async function createLinkIndex(tx: Transaction, name: string): Promise<void> {
  const index = toIndexName(name, false, ['member'])
  await tx.run(`create index ${quoteIdentifier(index)} on ${quoteIdentifier(name)} ("member", "owner")`)
}

/** Sets the default value of a new field in existing records. Their versions do not change. */
async function fillDefaultValue(
  tx: Transaction,
  dialect: Dialect,
  { model, field }: SchemaStep & { kind: 'add-column' },
): Promise<void> {
  const value = getDefaultValue(field, new Date(await readClock(tx, dialect)).toISOString())
  if (value === null) return
  await tx.run(`update ${quoteIdentifier(toTableName(model))} set ${quoteIdentifier(field.name)} = ?`, [
    encodeValue(dialect, field, value),
  ])
}

/** Starts the ids of a recreated model after the greatest id in the Log, so that no id is used twice. */
async function resumeIds(tx: Transaction, dialect: Dialect, model: string): Promise<void> {
  const lastId = await findLastLoggedId(tx, model)
  if (lastId > 0) await tx.run(dialect.startIdsAfter(toTableName(model), lastId))
}

export async function createIndex(
  tx: Transaction,
  dialect: Dialect,
  step: Omit<SchemaStep & { kind: 'create-index' }, 'kind'>,
): Promise<void> {
  const table = quoteIdentifier(toTableName(step.model))
  const columns = step.fields.map(quoteIdentifier).join(', ') + (step.unique ? '' : dialect.indexSuffix)
  try {
    await tx.run(
      `create ${step.unique ? 'unique ' : ''}index ${quoteIdentifier(step.name)} on ${table} (${columns})`,
    )
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error
    const message = `${step.model}: ${step.fields.join(' and ')} cannot be unique: several records have the same values. Change those records first`
    throw new ConfigError('The database schema cannot be changed to these models', [message])
  }
}
