// Values of a record → the statements that write its row. Texts are made once, and so is what turns values into columns.
import type { Field } from '../../model/values/field.js'
import type { Value, Values } from '../../model/values/value.js'
import { createEncoder } from './column.js'
import type { SqlValue } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import type { Table } from './table.js'

/** Which fields an update may name is up to whoever sends it. */
const MAX_CACHED_UPDATES = 100

interface RowStatements {
  readonly insert: string
  /** By the fields that each sets. */
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

/** A row at version 0. */
export function buildRowInsert(table: Table, values: Values): RowInsert {
  const { insert, columns } = getRowStatements(table)
  return { sql: insert, params: columns.map(({ field, encode }) => encode(values[field.name] ?? null)) }
}

export interface RowUpdate extends RowInsert {
  readonly fields: readonly Field[]
  /** Told apart by this from one that sets other fields. */
  readonly key: string
}

/** Behind its parameters follow the id and the version from which it is raised. */
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
  const marks = storedFields.map(() => '?').join(', ')
  return {
    insert: `insert into ${name} ("version", ${names}) values (0, ${marks})`,
    updates: new Map(),
    columns: storedFields.map((field) => ({ field, encode: createEncoder(dialect, field) })),
  }
}

function compileUpdate({ name }: Table, fields: readonly Field[]): string {
  const sets = fields.map((field) => `${quoteIdentifier(field.name)} = ?, `).join('')
  return `update ${name} set ${sets}"version" = "version" + 1 where "id" = ? and "version" = ?`
}
