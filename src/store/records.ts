import { Refusal } from '../errors.js'
import type { Field } from '../model/field.js'
import type { Search, Sort } from '../model/search.js'
import type { Value, Values } from '../model/value.js'
import type { WireRecord } from '../wire.js'
import { UniqueViolation, type Queryable, type Row, type SqlValue, type Transaction } from './database.js'
import { columnOf, encode, indexName, quote, type Selection, type Table } from './table.js'

export interface Found {
  readonly total: number
  readonly records: readonly WireRecord[]
}

/** A page and the count of all matches, in one statement so that both are of one moment. */
export async function find(db: Queryable, table: Table, search: Search): Promise<Found> {
  const { columns, joins } = table.list
  const where = table.model.archived && !search.archived ? 'where t."archived" is not true' : ''
  const count = `select count(*) as "$total" from ${table.name} as t ${where}`
  const rows = await db.all(
    `select (${count}) as "$total", ${columns} from ${table.name} as t ${joins} ${where} ${orderBy(search.sort)} limit ? offset ?`,
    [search.limit, search.offset],
  )
  if (rows.length > 0) {
    return {
      total: Number(rows[0]?.['$total']),
      records: rows.map((row) => toRecord(table, table.list, row)),
    }
  }
  const total = Number((await db.all(count))[0]?.['$total'])
  // Records came in between: there is a page after all.
  return total > search.offset && search.limit > 0 ? find(db, table, search) : { total, records: [] }
}

function orderBy(sort: readonly Sort[]): string {
  const keys = sort.map(
    ({ field, descending }) => `t.${quote(field)} ${descending ? 'desc' : 'asc'} nulls last`,
  )
  return `order by ${[...keys, 't."id"'].join(', ')}`
}

export async function read(db: Queryable, table: Table, id: number): Promise<WireRecord | undefined> {
  const { columns, joins } = table.full
  const [row] = await db.all(`select ${columns} from ${table.name} as t ${joins} where t."id" = ?`, [id])
  return row && toRecord(table, table.full, row)
}

/** Nobody else changes the record until the transaction ends. */
export async function readLocked(tx: Transaction, table: Table, id: number): Promise<WireRecord | undefined> {
  // The lock stands alone: PostgreSQL does not lock the empty side of an outer join.
  const { lockRows } = table.dialect
  if (lockRows !== '') await tx.all(`select 1 from ${table.name} where "id" = ?${lockRows}`, [id])
  return read(tx, table, id)
}

/** Stores new records, each with version 0; answers their ids. */
export async function insert(tx: Transaction, table: Table, rows: readonly Values[]): Promise<number[]> {
  const fields = table.stored
  const names = fields.map((field) => quote(field.name)).join(', ')
  const marks = fields.map(() => '?').join(', ')
  const sql = `insert into ${table.name} ("version", ${names}) values (0, ${marks})`
  const ids: number[] = []
  for (const row of rows) {
    const params = fields.map((field) => encode(table.dialect, field, row[field.name] ?? null))
    ids.push(await naming(table, () => tx.insert(sql, params)))
  }
  return ids
}

export interface Update {
  readonly id: number
  /** The version it was made from: the record must still have it. */
  readonly version: number
  readonly values: Values
}

/** One guarded statement for each: the version is checked where it is raised. Answers whether each was still at its version. */
export async function update(tx: Transaction, table: Table, updates: readonly Update[]): Promise<boolean[]> {
  const results: boolean[] = []
  for (const { id, version, values } of updates) {
    const fields = table.stored.filter((field) => Object.hasOwn(values, field.name))
    const sets = fields.map((field) => `${quote(field.name)} = ?, `).join('')
    const sql = `update ${table.name} set ${sets}"version" = "version" + 1 where "id" = ? and "version" = ?`
    const params = fields.map((field) => encode(table.dialect, field, values[field.name] ?? null))
    results.push((await naming(table, () => tx.run(sql, [...params, id, version]))) === 1)
  }
  return results
}

export interface Removal {
  readonly id: number
  readonly version: number
}

/** As `update`: only a record that is still at its version is removed. */
export async function remove(
  tx: Transaction,
  table: Table,
  removals: readonly Removal[],
): Promise<boolean[]> {
  const results: boolean[] = []
  for (const { id, version } of removals) {
    const sql = `delete from ${table.name} where "id" = ? and "version" = ?`
    results.push((await tx.run(sql, [id, version])) === 1)
  }
  return results
}

/** The engine says which index; people want to know which field. */
async function naming<T>(table: Table, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error
    const { name, unique } = table.model
    const fields =
      unique.find((set) => indexName(name, true, set) === error.index) ??
      unique.find((set) => set.join() === error.columns.join()) ??
      error.columns
    const errors = Object.fromEntries(fields.map((field) => [field, 'is taken by another record']))
    const data = { entityName: name, fields }
    throw new Refusal('not-unique', `Another ${name} has the same ${fields.join(' and ')}`, {
      errors,
      data,
      cause: error,
    })
  }
}

function toRecord(table: Table, selection: Selection, row: Row): WireRecord {
  const record: Record<string, Value> & { id: number; version: number } = {
    id: Number(row['id']),
    version: Number(row['version']),
  }
  for (const field of selection.fields) record[field.name] = toValue(table, field, row)
  return record
}

function toValue(table: Table, field: Field, row: Row): Value {
  const stored: SqlValue = row[field.name] ?? null
  if (field.target) {
    const version = row[`${field.name}$version`] ?? null
    if (stored === null || version === null) return null
    return { id: stored, $version: version, [field.target.nameField]: row[`${field.name}$name`] ?? null }
  }
  const value = columnOf(table.dialect, field).decode(stored)
  return field.type === 'decimal' && value !== null ? withScale(value as string, field.scale) : value
}

function withScale(decimal: string, scale: number): string {
  const [integer = '', fraction = ''] = decimal.split('.')
  return scale === 0 ? integer : `${integer}.${fraction.padEnd(scale, '0')}`
}
