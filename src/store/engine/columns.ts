// Columns of an engine, as data.
import type { Storage } from '../../model/values/field.js'
import type { Value } from '../../model/values/value.js'

type StoredValue = string | number | null

/** How an engine stores values of one storage type in a column. */
export interface Column {
  readonly type: string
  readonly encode: (value: Value) => StoredValue
  readonly decode: (stored: StoredValue) => Value
}

/** SQL expressions that build or read JSON. */
export interface JsonSql {
  /** A JSON array of these expressions. */
  readonly array: (values: readonly string[]) => string
  /** A JSON array with one element for each row. */
  readonly aggregate: (value: string, from: string) => string
  /** A column as an element of a JSON array, in a form that `Column.decode` accepts. */
  readonly value: (column: string, storage: Storage) => string
  /** A subselect that returns JSON, as an element of a JSON array. */
  readonly asJson: (subselect: string) => string
  /** The elements of a JSON array in a parameter, as rows of one column. */
  readonly unnest: (storage: Storage, placeholder?: string) => string
  /** The inner arrays of a JSON array in a parameter, as rows with these columns. */
  readonly recordset: (columns: readonly JsonColumn[], placeholder?: string) => string
}

/** A column of rows that come as JSON. */
export interface JsonColumn {
  readonly name: string
  readonly storage: Exclude<Storage, 'none'>
}
