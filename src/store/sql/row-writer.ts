// Builds the statements that write the row of a record. Texts and encoders are compiled once for each table.
import type { Field } from '../../model/values/field.js'
import type { Value, Values } from '../../model/values/value.js'
import { createEncoder } from './column.js'
import type { SqlValue } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import type { Table } from './table.js'

/** Clients choose the updated fields, so the number of cached statements is limited. */
const MAX_CACHED_UPDATES = 100

interface RowStatements {
  readonly insert: string
  /** By the names of the updated fields. */
  readonly updates: Map<string, string>
  readonly columns: readonly ColumnEncoder[]
}

interface ColumnEncoder {
  readonly field: Field
  readonly encode: (value: Value) => SqlValue
}

const ROW_STATEMENTS_CACHE = new WeakMap<Table, RowStatements>()

export interface RowInsert {
  readonly sql: string
  readonly params: SqlValue[]
}

/** Inserts a row with version 0. */
export function buildRowInsert(table: Table, values: Values): RowInsert {
  const { insert, columns } = getRowStatements(table)
  return { sql: insert, params: columns.map(({ field, encode }) => encode(values[field.name] ?? null)) }
}

export interface RowUpdate extends RowInsert {
  readonly fields: readonly Field[]
  /** The names of the updated fields; equal for updates with the same statement. */
  readonly key: string
}

/** Updates a row. The caller adds the id and the expected version to the parameters. */
export function buildRowUpdate(table: Table, values: Values): RowUpdate {
  const { updates, columns } = getRowStatements(table)
  const set = columns.filter(({ field }) => Object.hasOwn(values, field.name))
  const fields = set.map(({ field }) => field)
  const key = fields.map(({ name }) => name).join()
  const sql = updates.get(key) ?? compileUpdate(table, fields)
  if (updates.size < MAX_CACHED_UPDATES) updates.set(key, sql)
  return { sql, params: set.map(({ field, encode }) => encode(values[field.name] ?? null)), fields, key }
}

function getRowStatements(table: Table): RowStatements {
  const writer = ROW_STATEMENTS_CACHE.get(table) ?? compileRowStatements(table)
  ROW_STATEMENTS_CACHE.set(table, writer)
  return writer
}

function compileRowStatements({ name, dialect, storedFields }: Table): RowStatements {
  const names = storedFields.map((field) => quoteIdentifier(field.name)).join(', ')
  const placeholders = storedFields.map(() => '?').join(', ')
  return {
    insert: `insert into ${name} ("version", ${names}) values (0, ${placeholders})`,
    updates: new Map(),
    columns: storedFields.map((field) => ({ field, encode: createEncoder(dialect, field) })),
  }
}

function compileUpdate({ name }: Table, fields: readonly Field[]): string {
  const sets = fields.map((field) => `${quoteIdentifier(field.name)} = ?, `).join('')
  return `update ${name} set ${sets}"version" = "version" + 1 where "id" = ? and "version" = ?`
}
