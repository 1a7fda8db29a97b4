// Each step of a plan as SQL.
import { StartFaults } from '../../errors.js'
import { defaultOf } from '../../model/definition/record-values.js'
import { UniqueViolation, type Dialect, type Transaction } from '../engine/database.js'
import { LOG_TABLE } from '../log/log.js'
import { countRecords, forgetCounts } from '../counters/recount.js'
import { indexName, quote, tableName } from '../engine/names.js'
import type { Step } from './plan.js'
import { linkTable } from '../sql/relation.js'
import { columnOf, encode } from '../sql/column.js'
import { storedFields } from '../sql/table.js'

export async function carryOut(tx: Transaction, dialect: Dialect, step: Step): Promise<void> {
  const table = quote(tableName(step.model))
  switch (step.kind) {
    case 'create-table': {
      const columns = storedFields(step.declared)
        .map((field) => `, ${quote(field.name)} ${columnOf(dialect, field).type}`)
        .join('')
      const definition = `"id" ${dialect.identity}, "version" ${dialect.columns.integer.type} not null${columns}`
      await tx.run(`create table ${table} (${definition})${dialect.tableSuffix}`)
      return startIds(tx, dialect, step.model)
    }
    case 'add-column':
      await tx.run(
        `alter table ${table} add column ${quote(step.field.name)} ${columnOf(dialect, step.field).type}`,
      )
      await fillDefault(tx, dialect, step)
      return
    case 'rename-column':
      await tx.run(`alter table ${table} rename column ${quote(step.from)} to ${quote(step.to)}`)
      return
    case 'drop-column':
      await tx.run(`alter table ${table} drop column ${quote(step.name)}`)
      return
    case 'drop-table':
      await tx.run(`drop table ${table}`)
      await forgetCounts(tx, step.model)
      await tx.run('delete from verso_schema where model = ?', [step.model])
      return
    case 'create-index':
      return createIndex(tx, dialect, table, step)
    case 'drop-index':
      await tx.run(`drop index if exists ${quote(step.name)}`)
      return
    case 'create-link':
      return createLinks(tx, dialect, linkTable(step.model, step.field))
    case 'rename-link':
      return renameLinks(tx, linkTable(step.model, step.from), linkTable(step.model, step.to))
    case 'drop-link':
      await tx.run(`drop table ${quote(linkTable(step.model, step.field))}`)
      return
    case 'count-records':
      return countRecords(tx, dialect, step.declared)
  }
}

async function createLinks(tx: Transaction, dialect: Dialect, name: string): Promise<void> {
  const { type } = dialect.columns.integer
  const columns = `"owner" ${type} not null, "member" ${type} not null, primary key ("owner", "member")`
  await tx.run(`create table ${quote(name)} (${columns})${dialect.tableSuffix}`)
  await indexLinks(tx, name)
}

async function renameLinks(tx: Transaction, from: string, to: string): Promise<void> {
  await tx.run(`alter table ${quote(from)} rename to ${quote(to)}`)
  await tx.run(`drop index if exists ${quote(indexName(from, false, ['member']))}`)
  await indexLinks(tx, to)
}

/** To find the owners of a member. */
async function indexLinks(tx: Transaction, name: string): Promise<void> {
  const index = indexName(name, false, ['member'])
  await tx.run(`create index ${quote(index)} on ${quote(name)} ("member", "owner")`)
}

/** Records that were there before get the default of a new field. Their versions stay. */
async function fillDefault(
  tx: Transaction,
  dialect: Dialect,
  { model, field }: Step & { kind: 'add-column' },
): Promise<void> {
  const value = defaultOf(field, new Date().toISOString())
  if (value === null) return
  await tx.run(`update ${quote(tableName(model))} set ${quote(field.name)} = ?`, [
    encode(dialect, field, value),
  ])
}

/** A model that was dropped and comes back goes on after the ids that the Log knows: none is given twice. */
async function startIds(tx: Transaction, dialect: Dialect, model: string): Promise<void> {
  const [row] = await tx.all(`select max(record) as "last" from ${LOG_TABLE} where model = ?`, [model])
  const last = row?.['last'] ?? null
  if (last !== null) await tx.run(dialect.startIdsAfter(tableName(model), Number(last)))
}

async function createIndex(
  tx: Transaction,
  dialect: Dialect,
  table: string,
  step: Step & { kind: 'create-index' },
): Promise<void> {
  const columns = step.fields.map(quote).join(', ') + (step.unique ? '' : dialect.indexTail)
  try {
    await tx.run(`create ${step.unique ? 'unique ' : ''}index ${quote(step.name)} on ${table} (${columns})`)
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error
    const fault = `${step.model}: ${step.fields.join(' and ')} cannot be unique: several records have the same`
    throw new StartFaults('The tables cannot follow the models', [fault])
  }
}
