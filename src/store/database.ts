// The seam between the store and its two engines. Small on purpose: an engine runs statements and transactions, nothing more.
import type { Storage } from '../model/field.js'
import type { Value } from '../model/value.js'

export type SqlValue = string | number | null
export type Row = Readonly<Record<string, SqlValue>>

export interface Queryable {
  /** Rows of a statement that only reads; parameters stand as `?`. */
  all(sql: string, params?: readonly SqlValue[]): Promise<Row[]>
}

export interface Transaction extends Queryable {
  /** Runs a statement for its effect; answers the number of rows it changed. */
  run(sql: string, params?: readonly SqlValue[]): Promise<number>
  /** Inserts one row; answers the `id` that the engine gave it. */
  insert(sql: string, params?: readonly SqlValue[]): Promise<number>
}

export interface TransactionOptions {
  /** Changes tables: it waits longer for others, and may itself take as long as it takes. */
  readonly isLong?: boolean
}

export interface Database {
  readonly dialect: Dialect
  /** Sees what is committed; never writes. */
  readonly reader: Queryable
  /**
   * Runs the work and answers after its COMMIT. The work may be run again from its beginning when it could not be committed
   * through no fault of its own, so it awaits nothing but `tx` and keeps nothing outside.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  close(): Promise<void>
}

/** How an engine keeps one kind of value in a column. */
export interface Column {
  readonly type: string
  readonly encode: (value: Value) => SqlValue
  readonly decode: (stored: SqlValue) => Value
}

/** What differs between the engines, as data. */
export interface Dialect {
  readonly columns: Readonly<Record<Exclude<Storage, 'none'>, Column>>
  /** The definition of an `id` that is given once and never again. */
  readonly identity: string
  /** Makes a new table give ids from the one after this on. */
  readonly startIdsAfter: (table: string, id: number) => string
  /** Stands behind the column list of `create table`. */
  readonly tableSuffix: string
  /** Run first in a transaction that changes tables, so that two nodes starting at once take turns. */
  readonly lockSchema: readonly string[]
  /** Behind a select in a transaction: nobody else changes these rows until it ends. */
  readonly lockRows: string
  /** Run before the Log is appended to, so that its numbers are in commit order. */
  readonly lockLog: readonly string[]
}

/** A value that was there already. The engines say it in different words; the store finds the field. */
export class UniqueViolation extends Error {
  constructor(
    /** The index, or the columns of the index, whichever the engine tells. */
    readonly index: string | undefined,
    readonly columns: readonly string[],
    options: ErrorOptions,
  ) {
    super('a unique index refused the row', options)
    this.name = 'UniqueViolation'
  }
}
