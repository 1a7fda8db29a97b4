// The table of a model in one engine: names, columns, and SQL that is compiled once.
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import { selectFullRecord, selectListFields, reduceMembersToIds } from '../../model/query/selection.js'
import type { Dialect, SqlValue } from '../engine/database.js'
import { FieldNameHistory, type FormerFields } from './field-names.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { compileLogInsert, type LogInsert } from './log-insert.js'
import { RowWriter } from './row-writer.js'
import { compileSelection, type Select } from './select.js'

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
