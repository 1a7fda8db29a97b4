// A model as one engine keeps it: names, columns, and the SQL that is the same every time, made once.
import type { Catalog } from '../../model/catalog/catalog.js'
import { storageOf, type Field } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import { fullSelection, listSelection, withMemberIds } from '../../model/query/selection.js'
import type { Dialect, SqlValue } from '../engine/database.js'
import { FieldNames, type FormerFields } from './field-names.js'
import { quote, tableName } from '../engine/names.js'
import { compileSelection, type Select } from './select.js'

export interface Table {
  readonly model: Model
  readonly dialect: Dialect
  /** Quoted, ready for SQL. */
  readonly name: string
  /** Every field that has a column. */
  readonly stored: readonly Field[]
  /** Those of them that hold files. */
  readonly binary: readonly Field[]
  /** Rows that stand in the place of its own: those of records as they were. Each value of theirs is a parameter, under a mark. */
  readonly instead?: (mark: (value: SqlValue) => string) => string
  /** What its fields were called in the Log. */
  readonly names: FieldNames
  readonly full: Select
  /** A record as a write needs it: of the members of its lists the ids. Equal to `full` where there are no lists. */
  readonly own: Select
  readonly list: Select
}

/** The tables of a catalog in one engine. */
export class Tables {
  readonly #known = new Map<Model, Table>()

  constructor(
    readonly dialect: Dialect,
    readonly catalog: Catalog,
    readonly former: FormerFields = new Map(),
  ) {}

  of(model: Model): Table {
    const table = this.#known.get(model) ?? this.#make(model)
    this.#known.set(model, table)
    return table
  }

  #make(model: Model): Table {
    const stored = storedFields(model)
    const shown = fullSelection(this.catalog, model)
    const bare = withMemberIds(shown)
    const full = compileSelection(this.dialect, shown)
    return {
      model,
      dialect: this.dialect,
      name: quote(tableName(model.name)),
      stored,
      binary: stored.filter(({ type }) => type === 'binary'),
      names: new FieldNames(model, this.former.get(model.name) ?? []),
      full,
      own: bare === shown ? full : compileSelection(this.dialect, bare),
      list: compileSelection(this.dialect, listSelection(this.catalog, model)),
    }
  }
}

/** Every field that has a column. */
export function storedFields(model: Model): Field[] {
  return [...model.fields.values()].filter((field) => storageOf(field) !== 'none')
}
