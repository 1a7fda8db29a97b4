// Values of a record → the statements that write its row. Texts are made once, and so is what turns values into columns.
import type { Field } from '../../model/values/field-types.js'
import type { Value, Values } from '../../model/values/value.js'
import { encoderOf } from './column.js'
import type { SqlValue } from '../engine/database.js'
import { quote } from '../engine/names.js'
import type { Table } from './table.js'

/** Which fields an update may name is up to whoever sends it. */
const MAX_UPDATES = 100

interface Writer {
  readonly insert: string
  /** By the fields that each sets. */
  readonly updates: Map<string, string>
  readonly columns: readonly Column[]
}

interface Column {
  readonly field: Field
  readonly encode: (value: Value) => SqlValue
}

const WRITERS = new WeakMap<Table, Writer>()

export interface NewRow {
  readonly sql: string
  readonly params: SqlValue[]
}

/** A row at version 0. */
export function newRow(table: Table, values: Values): NewRow {
  const { insert, columns } = writerOf(table)
  return { sql: insert, params: columns.map(({ field, encode }) => encode(values[field.name] ?? null)) }
}

export interface RowUpdate extends NewRow {
  readonly fields: readonly Field[]
  /** Told apart by this from one that sets other fields. */
  readonly key: string
}

/** Behind its parameters follow the id and the version from which it is raised. */
export function rowUpdate(table: Table, values: Values): RowUpdate {
  const { updates, columns } = writerOf(table)
  const set = columns.filter(({ field }) => Object.hasOwn(values, field.name))
  const fields = set.map(({ field }) => field)
  const key = fields.map(({ name }) => name).join()
  const sql = updates.get(key) ?? updateText(table, fields)
  if (updates.size < MAX_UPDATES) updates.set(key, sql)
  return { sql, params: set.map(({ field, encode }) => encode(values[field.name] ?? null)), fields, key }
}

function writerOf(table: Table): Writer {
  const writer = WRITERS.get(table) ?? makeWriter(table)
  WRITERS.set(table, writer)
  return writer
}

function makeWriter({ name, dialect, stored }: Table): Writer {
  const names = stored.map((field) => quote(field.name)).join(', ')
  const marks = stored.map(() => '?').join(', ')
  return {
    insert: `insert into ${name} ("version", ${names}) values (0, ${marks})`,
    updates: new Map(),
    columns: stored.map((field) => ({ field, encode: encoderOf(dialect, field) })),
  }
}

function updateText({ name }: Table, fields: readonly Field[]): string {
  const sets = fields.map((field) => `${quote(field.name)} = ?, `).join('')
  return `update ${name} set ${sets}"version" = "version" + 1 where "id" = ? and "version" = ?`
}
