// The table of a model in one engine: names, columns, and SQL that is compiled once.
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import { getReferenceId, type Values } from '../../model/values/value.js'
import type { Model } from '../../model/definition/model.js'
import { selectFullRecord, selectListFields, reduceMembersToIds } from '../../model/query/selection.js'
import type { Column, JsonColumn } from '../engine/columns.js'
import type { BulkInsert, Dialect, RowListWriter, SqlValue, UpdatedColumns } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { encodeAsIs, getColumn, isStoredAsId, toJsonColumn } from './column.js'
import { FieldNameHistory, type FormerFields } from './field-names.js'
import { compileLogInsert, type LogInsert } from './log-insert.js'
import { compileSelection, type Select } from './select.js'

/** Clients choose the updated fields, so the number of cached statements is limited. */
const MAX_CACHED_UPDATES = 100

const KEY_COLUMNS = [
  { name: 'id', storage: 'integer' },
  { name: 'version', storage: 'integer' },
] as const satisfies JsonColumn[]

export interface Table {
  readonly model: Model
  readonly dialect: Dialect
  /** Quoted, ready for SQL. */
  readonly name: string
  /** All fields with a column. */
  readonly storedFields: readonly Field[]
  /** The stored fields of type `binary`. */
  readonly fileFields: readonly Field[]
  /** Rows of former versions that replace the rows of the table. `bind` turns each value into a parameter. */
  readonly historicalRows?: (bind: (value: SqlValue) => string) => string
  /** The current and former names of its fields in the Log. */
  readonly fieldNames: FieldNameHistory
  readonly rowWriter: RowWriter
  readonly full: Select
  /** The record as a write needs it, with only the ids of list members. Identical to `full` without lists. */
  readonly own: Select
  readonly list: Select
}

/** The tables of all models of a catalog in one engine. */
export class Tables {
  readonly #cache = new Map<Model, Table>()
  #logInsert: LogInsert | undefined

  constructor(
    readonly dialect: Dialect,
    readonly catalog: Catalog,
    readonly formerFields: FormerFields = new Map(),
  ) {}

  of(model: Model): Table {
    const cached = this.#cache.get(model)
    if (cached) return cached
    const table = this.#build(model)
    this.#cache.set(model, table)
    return table
  }

  get logInsert(): LogInsert {
    return (this.#logInsert ??= compileLogInsert(this.dialect))
  }

  #build(model: Model): Table {
    const { dialect } = this
    const tableName = toTableName(model.name)
    const name = quoteIdentifier(tableName)
    const storedFields = listStoredFields(model)
    const selection = selectFullRecord(this.catalog, model)
    const writeSelection = reduceMembersToIds(selection)
    const full = compileSelection(dialect, selection)
    return {
      model,
      dialect,
      name,
      storedFields,
      fileFields: storedFields.filter(({ type }) => type === 'binary'),
      fieldNames: new FieldNameHistory(model, this.formerFields.get(model.name) ?? []),
      rowWriter: new RowWriter({ tableName, name, dialect, storedFields }),
      full,
      own: writeSelection === selection ? full : compileSelection(dialect, writeSelection),
      list: compileSelection(dialect, selectListFields(this.catalog, model)),
    }
  }
}

export function listStoredFields(model: Model): Field[] {
  return [...model.fields.values()].filter((field) => getStorage(field) !== 'none')
}

/** A table as its writer sees it. */
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
  /** True for references and files. */
  readonly isStoredAsId: boolean
  /** Undefined if the column stores values as they are. */
  readonly encode: Column['encode'] | undefined
}

/** The statement that updates some fields of one row. */
export interface UpdateStatement extends UpdatedColumns {
  /** Parameters: the new values, the id, the version. */
  readonly sql: string
  /** The statement without the increment of the version. */
  readonly sqlKeepingVersion: string
  readonly fields: readonly Field[]
}

/** An update of one row. */
export interface RowUpdate {
  readonly id: number
  /** The version guard: the row must still have this version. */
  readonly version: number
  readonly statement: UpdateStatement
  /** The new values. */
  readonly params: readonly SqlValue[]
}

/** Builds the statements that write rows of one table. Texts and encoders are compiled on first use. */
class RowWriter {
  #insertSql: string | undefined
  #columns: readonly ColumnEncoder[] | undefined
  #bulkInsert: BulkInsert | undefined
  #lists: RowListWriter | undefined
  /** By the names of the updated fields. */
  readonly #updates = new Map<string, UpdateStatement>()

  constructor(private readonly table: WrittenTable) {}

  /** Inserts a row with version 0 and the values of all stored fields. */
  get insertSql(): string {
    return (this.#insertSql ??= compileInsert(this.table))
  }

  buildUpdate(id: number, version: number, values: Values): RowUpdate {
    const params: SqlValue[] = []
    let key = ''
    for (const encoder of this.#encoders) {
      const { name } = encoder.field
      if (!Object.hasOwn(values, name)) continue
      key += `,${name}`
      params.push(encodeField(encoder, values))
    }
    return { id, version, statement: this.#updates.get(key) ?? this.#addUpdate(key, values), params }
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
    return this.#encoders.map((encoder) => encodeField(encoder, values))
  }

  #addUpdate(key: string, values: Values): UpdateStatement {
    const statement = compileUpdate(this.table, key, values)
    if (this.#updates.size < MAX_CACHED_UPDATES) this.#updates.set(key, statement)
    return statement
  }

  get #encoders(): readonly ColumnEncoder[] {
    return (this.#columns ??= compileEncoders(this.table))
  }
}

function compileEncoders({ dialect, storedFields }: WrittenTable): ColumnEncoder[] {
  return storedFields.map((field) => {
    const { encode } = getColumn(dialect, field)
    return {
      field,
      isStoredAsId: isStoredAsId(field),
      encode: encode === encodeAsIs ? undefined : encode,
    }
  })
}

function encodeField({ field, isStoredAsId, encode }: ColumnEncoder, values: Values): SqlValue {
  const value = values[field.name] ?? null
  const stored = isStoredAsId && value !== null ? getReferenceId(value) : value
  return encode ? encode(stored) : (stored as SqlValue)
}

function compileInsert({ name, storedFields }: WrittenTable): string {
  const names = storedFields.map((field) => quoteIdentifier(field.name)).join(', ')
  const placeholders = storedFields.map(() => '?').join(', ')
  return `insert into ${name} ("version", ${names}) values (0, ${placeholders})`
}

function compileUpdate({ name, storedFields }: WrittenTable, key: string, values: Values): UpdateStatement {
  const fields = storedFields.filter((field) => Object.hasOwn(values, field.name))
  const sets = fields.map((field) => `${quoteIdentifier(field.name)} = ?, `).join('')
  const guard = 'where "id" = ? and "version" = ?'
  return {
    key,
    sql: `update ${name} set ${sets}"version" = "version" + 1 ${guard}`,
    sqlKeepingVersion: `update ${name} set ${sets}"version" = "version" ${guard}`,
    fields,
    columns: fields.map(toJsonColumn),
  }
}
