// Builds the statements that write rows of one table. Texts and encoders are compiled on first use.
import type { Field } from '../../model/values/field.js'
import type { Value, Values } from '../../model/values/value.js'
import { createEncoder, toJsonColumn } from './column.js'
import type { BulkInsert, Dialect, JsonColumn, RowListWriter, SqlValue } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'

/** Clients choose the updated fields, so the number of cached statements is limited. */
const MAX_CACHED_UPDATES = 100

const KEY_COLUMNS = [
  { name: 'id', storage: 'integer' },
  { name: 'version', storage: 'integer' },
] as const satisfies JsonColumn[]

/** The part of a Table that its writer needs. */
interface WrittenTable {
  /** Not quoted. */
  readonly tableName: string
  /** Quoted. */
  readonly name: string
  readonly dialect: Dialect
  readonly storedFields: readonly Field[]
}

interface ColumnEncoder {
  readonly field: Field
  readonly encode: (value: Value) => SqlValue
}

/** An update of one row. */
export interface RowUpdate {
  readonly id: number
  /** The version guard: the row must still have this version. */
  readonly version: number
  readonly sql: string
  /** The new values. The id and the version follow them in the statement. */
  readonly params: readonly SqlValue[]
  readonly fields: readonly Field[]
  /** The names of the updated fields; equal for updates with the same statement. */
  readonly key: string
}

export class RowWriter {
  #insertSql: string | undefined
  #columns: readonly ColumnEncoder[] | undefined
  #bulkInsert: BulkInsert | undefined
  #lists: RowListWriter | undefined
  /** By the names of the updated fields. */
  readonly #updates = new Map<string, string>()

  constructor(private readonly table: WrittenTable) {}

  /** Inserts a row with version 0 and the values of all stored fields. */
  get insertSql(): string {
    return (this.#insertSql ??= compileInsert(this.table))
  }

  buildUpdate(id: number, version: number, values: Values): RowUpdate {
    const set = this.#encoders.filter(({ field }) => Object.hasOwn(values, field.name))
    const fields = set.map(({ field }) => field)
    const key = fields.map(({ name }) => name).join()
    const sql = this.#updates.get(key) ?? compileUpdate(this.table, fields)
    if (this.#updates.size < MAX_CACHED_UPDATES) this.#updates.set(key, sql)
    const params = set.map(({ field, encode }) => encode(values[field.name] ?? null))
    return { id, version, sql, params, fields, key }
  }

  /** Writes lists of rows; the values of an inserted row are those of all stored fields. */
  get lists(): RowListWriter {
    const { dialect, tableName, storedFields } = this.table
    return (this.#lists ??= dialect.createRowListWriter({
      name: tableName,
      columns: storedFields.map(toJsonColumn),
    }))
  }

  /** Inserts rows with the columns id, version and all stored fields. */
  get bulkInsert(): BulkInsert {
    const { dialect, name, storedFields } = this.table
    return (this.#bulkInsert ??= dialect.createBulkInsert({
      table: name,
      columns: [...KEY_COLUMNS, ...storedFields.map(toJsonColumn)],
    }))
  }

  /** The values of all stored fields in their order. */
  encode(values: Values): SqlValue[] {
    return this.#encoders.map(({ field, encode }) => encode(values[field.name] ?? null))
  }

  get #encoders(): readonly ColumnEncoder[] {
    return (this.#columns ??= compileEncoders(this.table))
  }
}

function compileEncoders({ dialect, storedFields }: WrittenTable): ColumnEncoder[] {
  return storedFields.map((field) => ({ field, encode: createEncoder(dialect, field) }))
}

function compileInsert({ name, storedFields }: WrittenTable): string {
  const names = storedFields.map((field) => quoteIdentifier(field.name)).join(', ')
  const placeholders = storedFields.map(() => '?').join(', ')
  return `insert into ${name} ("version", ${names}) values (0, ${placeholders})`
}

function compileUpdate({ name }: WrittenTable, fields: readonly Field[]): string {
  const sets = fields.map((field) => `${quoteIdentifier(field.name)} = ?, `).join('')
  return `update ${name} set ${sets}"version" = "version" + 1 where "id" = ? and "version" = ?`
}
