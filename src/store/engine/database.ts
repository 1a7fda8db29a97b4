// The seam between the store and its two engines. Small on purpose: an engine runs statements and transactions, nothing more.
import type { Readable } from 'node:stream'
import type { Storage } from '../../model/values/field-types.js'
import type { Value } from '../../model/values/value.js'
import type { UnwritableState } from './database-condition.js'
import type { BatchFunction } from './batcher.js'

export type SqlValue = string | number | null
export type Row = Readonly<Record<string, SqlValue>>

export interface Queryable {
  /** Rows of a statement that only reads; parameters stand as `?`. */
  all(sql: string, params?: readonly SqlValue[]): Promise<Row[]>
  /**
   * Where an engine has it: what is asked under one key at the same time is asked in one go. `run` answers one output for each input, in
   * their order; if it fails for several, each is run alone.
   */
  batch?<I, O>(key: string, input: I, run: BatchFunction<I, O>): Promise<O>
  /** Where an engine has it: several statements at one moment, which cost little more than one. */
  readInSnapshot?<T>(work: (all: (sql: string, params: readonly SqlValue[]) => Row[]) => T): Promise<T>
  /** Where an engine has it: all that is asked before the work returns is asked of one moment, and costs less for that. */
  withSnapshot?(work: () => void): void
}

/** What may take long, and what needs several statements that are of one moment. */
export interface QueryPool extends Queryable {
  /** All that the work reads is as it was at its beginning, whatever is committed meanwhile. It may be run again. */
  snapshot<T>(work: (db: Queryable) => Promise<T>): Promise<T>
}

export interface Transaction extends Queryable {
  /** Runs a statement for its effect; answers the number of rows it changed. */
  run(sql: string, params?: readonly SqlValue[]): Promise<number>
  /** Inserts one row; answers the `id` that the engine gave it. */
  insert(sql: string, params?: readonly SqlValue[]): Promise<number>
  /**
   * Where an engine has it: a statement that nobody waits for, so that it travels together with the COMMIT. If it fails, so does the
   * transaction.
   */
  sendWithCommit?(sql: string, params: readonly SqlValue[]): void
  /** Where works are together in a transaction: what is the same for all of them is asked for once. */
  memoize?<T>(key: string, ask: () => Promise<T>): Promise<T>
  /** The same: what comes last is done when all works are done, with the inputs of all of them, in the order in which they came. */
  beforeCommit?<I>(key: string, input: I, run: BeforeCommitHandler<I>): void
  /** Only where the work runs beside others in the transaction. */
  readonly group?: GroupContext
}

export type BeforeCommitHandler<I> = (tx: Transaction, inputs: readonly I[]) => Promise<void>

/**
 * What a work has in a transaction that it shares with others. There locks keep nobody apart, and what others have written is seen before
 * it is committed: whoever rests on more than the version guard and unique indexes leaves.
 */
export interface GroupContext {
  /** The work ends here, and runs again from its beginning in a transaction of its own. */
  requireExclusive(): never
  /** As `together`, for what writes. Whoever gets undefined has written nothing, and leaves. */
  batchWrite<I, O>(key: string, input: I, run: BatchFunction<I, O | undefined>): Promise<O>
}

/** A work that rests on nothing but the version guard and unique indexes. */
export interface GroupableWrite {
  /** The one record that it writes, by any name that no other has; absent for a new one. */
  readonly record?: string | undefined
}

export interface TransactionOptions {
  /** Changes tables: it waits longer for others, and may itself take as long as it takes. */
  readonly isLong?: boolean
  /** An engine may let such works share a transaction. */
  readonly groupable?: GroupableWrite | undefined
}

/** Counters of work in progress by name. Each is 0 while there is nothing to do. */
export type Gauges = Readonly<Record<string, number>>

export interface Database {
  readonly dialect: Dialect
  /** Sees what is committed; never writes. */
  readonly reader: Queryable
  /** For statements that may take long: never holds up the event loop, and ends with `busy` past the time limit. */
  readonly queryPool: QueryPool
  /** What lies beside the tables: the content of files. */
  readonly blobs: BlobStore
  readonly commits: CommitEvents
  /**
   * Runs the work and answers after its COMMIT. The work may be run again from its beginning when it could not be committed
   * through no fault of its own, so it awaits nothing but `tx` and keeps nothing outside.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /** Why writes are refused; undefined if they are taken. Looks again where that may have changed. */
  writability(): Promise<UnwritableState | undefined>
  /** Those of an engine; a database that stands before another one may leave them out. */
  gauges?(): Gauges
  close(): Promise<void>
}

/**
 * Tells that something may have been committed, by whichever process. It may tell too often, and late where a connection was lost; it
 * never stays silent.
 */
export interface CommitEvents {
  /** Answers how to stop listening. */
  listen(listener: () => void): () => void
}

/** Content that has arrived whole, and waits for the transaction that decides whether it stays. */
export interface PendingBlob {
  /** What it is called where it lies: random, given once. */
  readonly key: string
  readonly size: number
  readonly sha256: string
  /** Its first bytes. */
  readonly head: Uint8Array
}

/** Where content lies. */
export interface BlobLocation {
  readonly id: number
  readonly key: string
  readonly size: number
}

/**
 * The content of files, beside the records that hold them. Each engine keeps it in its own way, and all promise the same: content is
 * there as long as its row is, and not longer, wherever a process ends.
 */
export interface BlobStore {
  /** Takes content in. What is longer than the limit is refused with `too-large`, and nothing of it is left. */
  receive(source: AsyncIterable<Uint8Array>, limitBytes: number): Promise<PendingBlob>
  /** In the transaction that has stored the row of the file. */
  store(tx: Transaction, id: number, incoming: PendingBlob): Promise<void>
  /** After that transaction, however it ended. Content without a row goes. Never fails: what is left undone, `recover` does. */
  finish(incoming: PendingBlob): Promise<void>
  /** In the transaction that removes the row of the file. */
  drop(tx: Transaction, file: BlobLocation): Promise<void>
  /** After that transaction. Never fails either. */
  collect(): Promise<void>
  /** Undefined if the content is gone: then its row is, too. What was opened is read to its end, or fails. */
  open(file: BlobLocation): Promise<Readable | undefined>
  /**
   * At start and now and then: does what processes left undone that are no more, and what this one has forgotten. Content that nothing was
   * done with for so long is taken for forgotten.
   */
  recover(forgottenMs?: number): Promise<void>
  /** How many uploads are between `receive` and `settle`. */
  countPending(): number
  /** Content that no row stands for, and that nobody is about to store or remove: by names that an operator finds. */
  findOrphans(): AsyncIterable<string>
  close(): Promise<void>
}

/** How an engine keeps one kind of value in a column. */
export interface Column {
  readonly type: string
  readonly encode: (value: Value) => SqlValue
  readonly decode: (stored: SqlValue) => Value
}

/** JSON that the database makes. */
export interface JsonSql {
  /** A list of these values. */
  readonly array: (values: readonly string[]) => string
  /** A list of one value for each row. */
  readonly aggregate: (value: string, from: string) => string
  /** A column as it is to stand in a list, so that the column can decode it. */
  readonly value: (column: string, storage: Storage) => string
  /** A subselect that answers JSON, inside of a list. */
  readonly asJson: (subselect: string) => string
  /** The values of a parameter that holds a JSON list, as rows of one column. */
  readonly unnest: (storage: Storage, mark?: string) => string
  /** The lists in a parameter that holds a JSON list of them, as rows with these columns. */
  readonly recordset: (columns: readonly JsonColumn[], mark?: string) => string
}

/** A column of rows that are made of JSON. */
export interface JsonColumn {
  readonly name: string
  readonly storage: Exclude<Storage, 'none'>
}

/** Rows of several works in one statement. */
export interface BatchSql {
  /** Rows made of lists, one for each column under a mark of its own; numbered from 1 as `$row`. */
  readonly unnest: (columns: readonly JsonColumn[]) => string
  /** The values of one column, as its parameter. */
  readonly arrayLiteral: (values: readonly SqlValue[]) => string
  /** Draws the next id of a table. */
  readonly nextId: (table: string) => string
  /** Behind a lock: rows that others have locked are left out. */
  readonly skipLocked: string
}

/** What differs between the engines, as data. */
export interface Dialect {
  readonly columns: Readonly<Record<Exclude<Storage, 'none'>, Column>>
  /** The text of a column as `fold` of the model would give it. */
  readonly fold: (column: string) => string
  /** The definition of an `id` that is given once and never again. */
  readonly identity: string
  /** Makes a new table give ids from the one after this on. */
  readonly startIdsAfter: (table: string, id: number) => string
  /** Makes a table that is in use give ids after this one; never makes it go back. */
  readonly advanceIds: (table: string, id: number) => readonly string[]
  /** Stands behind the column list of `create table`. */
  readonly tableSuffix: string
  /** The same for the tables of counters, whose rows are written again and again. */
  readonly counterSuffix: string
  /** Ends the columns of an index, so that it answers in the order of the ids. */
  readonly indexSuffix: string
  /** Run before the records of a table are counted: whoever writes them waits, and has seen nothing of what comes. */
  readonly lockTable: (table: string) => readonly string[]
  /** Run first in a transaction that changes tables, so that two nodes starting at once take turns. */
  readonly lockSchema: readonly string[]
  /** Each answers, as `fault`, what is wrong with the pages, indexes and references of the database, at most some of it. */
  readonly integrityChecks: readonly { readonly name: string; readonly sql: string }[]
  /** Each answers, as `fault`, why this database cannot be used. */
  readonly startupChecks: readonly string[]
  /** The tables, made where they are not there, with which this engine keeps the content of files. */
  readonly blobTables: readonly string[]
  /** What the engine needs beside tables: made where the first statement answers no row. */
  readonly setUp: readonly { readonly unless: string; readonly make: string }[]
  /** Answers a row if the table, by its name, has the column, by its name. */
  readonly findColumn: string
  /** Answers a row if there is an index of this name. */
  readonly findIndex: string
  /** Behind a select in a transaction: nobody else changes these rows until it ends. */
  readonly lockForUpdate: string
  /** The same for rows that are referred to: others may change them, and nobody removes them. */
  readonly lockForReference: string
  /** The same for rows that are only read: nobody changes them, and others may hold them so, too. */
  readonly lockForShare: string
  /** The same for rows that are about to go: nobody changes them, and nobody begins to refer to them. */
  readonly lockForRemoval: string
  readonly json: JsonSql
  /** A column as the text of its JSON, `null` where it is empty: as `JSON.stringify` would print what the column decodes. */
  readonly toJson: Readonly<Partial<Record<Storage, (column: string) => string>>>
  /** Whether a plan is kept only if its text says how many rows there are at most. */
  readonly needsLiteralLimit: boolean
  /** Whether a record that is printed and parsed is there sooner than one whose columns are taken over one by one. */
  readonly prefersJsonText: boolean
  /** The texts of rows of a sorted select behind each other, with commas, as text or its bytes; null where there are none. */
  readonly joinJson: (text: string, order: string) => string
  /** Where an engine lets works share a transaction. */
  readonly batch?: BatchSql
  /** Stands before and at the end of each select that is inserted into the Log, so that its numbers are in commit order. */
  readonly lockLog: { readonly with: string; readonly from: string }
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
