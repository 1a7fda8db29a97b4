// The interface between the store and its two engines. It is small on purpose: an engine runs statements and transactions, nothing more.
import type { Readable } from 'node:stream'
import type { Storage } from '../../model/values/field.js'
import type { ByteRange } from '../../wire.js'
import type { Column, JsonColumn, JsonSql } from './columns.js'
import type { DatabaseMeasures, WaitingCalls } from './measures.js'
import type { UnwritableState } from './write-health.js'

export type SqlValue = string | number | null
export type Row = Readonly<Record<string, SqlValue>>
export type SynchronousRead = (sql: string, params: readonly SqlValue[]) => Row[]

export interface Queryable {
  /** Returns the rows of a statement that only reads. Placeholders are `?`. */
  all(sql: string, params?: readonly SqlValue[]): Promise<Row[]>
  /** Like `all`. Where the engine gains from it, equal statements that wait at the same time run once, and their callers share the rows. */
  allShared(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]>
  /** Runs the work, in one call with concurrent works of the same key where the engine gains from it. */
  batch<I, O>(work: BatchWork<Queryable, I, O>, input: I): Promise<O>
  /** Runs several synchronous statements on one snapshot, which cost little more than one; or `otherwise`, where statements are asynchronous. */
  readInSnapshot<T>(work: (all: SynchronousRead) => T, otherwise: () => Promise<T>): Promise<T>
}

/** Work that several callers can share. */
export interface BatchWork<D, I, O, Refused = never> {
  readonly key: string
  runOne(db: D, input: I): Promise<O>
  /** Returns one output for each input, in the same order. If it fails, each input runs alone. */
  runMany(db: D, inputs: readonly I[]): Promise<readonly (O | Refused)[]>
}

/** A write of several members of a group. The output of a member that has written nothing is undefined; that member runs again alone. */
export type WriteBatchWork<I, O> = BatchWork<Transaction, I, O, undefined>
export type BeforeCommitHandler<I> = (tx: Transaction, inputs: readonly I[]) => Promise<void>

export interface Reader extends Queryable {
  /** All statements that the work starts before it returns read from one snapshot, which makes them cheaper on some engines. */
  withSnapshot(work: () => void): void
}

/** For long statements, and for several statements that must read from one snapshot. */
export interface QueryPool extends Queryable {
  /** Runs the work on a snapshot of the database. The work may run again from its beginning. */
  snapshot<T>(work: SnapshotWork<T>): Promise<T>
  /**
   * Like `snapshot`, for work that takes hours and may wait for other things than the database. The work takes no connection from other work,
   * has no time limit, and never runs again.
   */
  longSnapshot<T>(work: SnapshotWork<T>): Promise<T>
}

export type SnapshotWork<T> = (db: Queryable) => Promise<T>

/**
 * Other members of a group commit may run concurrently in the same transaction. Locks do not separate them, and their uncommitted rows are
 * visible. Work that depends on more than its version guard and unique indexes must call `requireExclusive`.
 */
export interface Transaction extends Queryable {
  /** The number of statements that were started so far. */
  readonly statementCount: number
  /** Runs a statement and returns the number of rows that it changed. */
  run(sql: string, params?: readonly SqlValue[]): Promise<number>
  /** Inserts one row and returns its generated `id`. */
  insert(sql: string, params?: readonly SqlValue[]): Promise<number>
  /** Runs the write, in one call with writes of the same key by other members of the group. */
  batchWrite<I, O>(work: WriteBatchWork<I, O>, input: I): Promise<O>
  /** Sends a statement together with the COMMIT where that saves a round trip. If it fails, the transaction fails. */
  sendWithCommit(sql: string, params: readonly SqlValue[]): Promise<void>
  /** Loads a value, once for all members of a group. */
  memoize<T>(key: string, load: () => Promise<T>): Promise<T>
  /** Runs the handler before the COMMIT: at once, or once after all members of a group are done, with their inputs in the order of the calls. */
  beforeCommit<I>(key: string, input: I, run: BeforeCommitHandler<I>): Promise<void>
  /** Returns if no other member runs concurrently. Otherwise the work stops here and runs again in a transaction of its own. */
  requireExclusive(): void
}

/** A write that depends on nothing but its version guard and unique indexes, so it may join a group commit. */
export interface GroupableWrite {
  /** A unique name of the one record that it writes; absent for a new record. */
  readonly record?: string | undefined
}

export interface TransactionOptions {
  /** For schema changes: waits longer for locks, and its statements have no time limit. */
  readonly isLong?: boolean
  /** Permits the engine to run the work in a group commit. */
  readonly groupable?: GroupableWrite | undefined
  /** Runs also while the disk is full, if the engine has kept room for it: the work makes room, or somebody needs it to make room. */
  readonly isNecessary?: boolean | undefined
}

export const LONG_TRANSACTION: TransactionOptions = { isLong: true }
export const NECESSARY_TRANSACTION: TransactionOptions = { isNecessary: true }

/** Gauges of work in progress by name. Each is 0 while the database is idle. */
export type Gauges = Readonly<Record<string, number>>

export interface Database {
  readonly dialect: Dialect
  /** Reads committed data; never writes. */
  readonly reader: Reader
  /** For long statements: never blocks the event loop, and fails with `busy` after the time limit. */
  readonly queryPool: QueryPool
  /** The content of files. */
  readonly blobs: BlobStore
  readonly commits: CommitEvents
  /**
   * Runs the work and resolves after its COMMIT. The engine may retry the work from its beginning if the commit fails for reasons outside
   * the work. The work must await nothing but `tx` and must change no state outside of it.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /** Why the database rejects writes; undefined if it accepts them. Checks again if the state may have changed. */
  writability(): Promise<UnwritableState | undefined>
  gauges(): Gauges
  /** The calls that wait for a connection. Absent on SQLite: its query pool limits its own queue, and other calls do not wait. */
  readonly waiting?: { readonly reads: WaitingCalls; readonly writes: WaitingCalls } | undefined
  measure(): Promise<DatabaseMeasures>
  close(): Promise<void>
}

/** Signals that some process may have committed: after every commit, late after a lost connection, and sometimes without a commit. */
export interface CommitEvents {
  /** Returns a function that removes the listener. */
  listen(listener: () => void): () => void
}

/** Completely received content whose row is not committed yet. */
export interface PendingBlob {
  /** The random, unique name of the content in the blob store. */
  readonly key: string
  readonly size: number
  readonly sha256: string
  /** Its first bytes. */
  readonly head: Uint8Array
}

export interface BlobLocation {
  readonly id: number
  readonly key: string
  readonly size: number
}

/**
 * Stores the content of files. Each engine has its own implementation with the same guarantee: content exists exactly as long as its row,
 * even if a process crashes.
 */
export interface BlobStore {
  /** Receives content. Content beyond the limit is rejected with `too-large` and removed. */
  receive(source: AsyncIterable<Uint8Array>, limitBytes: number): Promise<PendingBlob>
  /** Must be called in the transaction that inserts the row of the file. */
  store(tx: Transaction, id: number, pending: PendingBlob): Promise<void>
  /** Must be called after that transaction, committed or not. Removes content without a row. Never fails: `recover` repeats it later. */
  finish(pending: PendingBlob): Promise<void>
  /** Must be called in the transaction that deletes the row of the file. */
  drop(tx: Transaction, file: BlobLocation): Promise<void>
  /** Must be called after that transaction. Removes dropped content. Never fails. */
  collect(): Promise<void>
  /**
   * Undefined if the content and its row are deleted. A stream that was opened delivers the whole content, or fails. With a range, which must
   * be within the content, it reads and delivers only that.
   */
  open(file: BlobLocation, range?: ByteRange): Promise<Readable | undefined>
  /** Like `open`, for a file whose row is in this snapshot and may be deleted by now. Requires `retainDropped` since before the snapshot. */
  openInSnapshot(snapshot: Queryable, file: BlobLocation): Promise<Readable | undefined>
  /** Keeps the content that any process drops from now on. Returns a function that ends this. It also ends some minutes after a crash. */
  retainDropped(): Promise<() => void>
  /**
   * Called at start and periodically. Finishes uploads of crashed processes, and abandoned uploads of this one. An upload counts as abandoned
   * after this time without progress.
   */
  recover(abandonedAfterMs?: number): Promise<void>
  /** The number of uploads between `receive` and `finish`. */
  countPending(): number
  /** Content without a row that no upload or removal is about to change, by names that an operator can look up. */
  findOrphans(): AsyncIterable<string>
  close(): Promise<void>
}

/** Rows as values in the order of their columns. */
export type SqlRows = readonly (readonly SqlValue[])[]
export type SendStatement = (sql: string, params: readonly SqlValue[], isLast: boolean) => unknown

/** Writes lists of rows into one table with few statements. No two rows of an update or delete have the same id. */
export interface RowListWriter {
  /** Inserts rows with version 0 and the values of all columns. Returns their ids; undefined for a row that a unique index refused. */
  insert(tx: Transaction, rows: SqlRows): Promise<(number | undefined)[]>
  /**
   * Updates columns that no unique index contains, and increments the version. Each row starts with its id and its expected version. Returns
   * false for each row whose version differs. `skipsLocked` also skips rows that other transactions have locked.
   */
  update(tx: Transaction, updated: UpdatedColumns, rows: SqlRows, skipsLocked?: boolean): Promise<boolean[]>
  /** Deletes rows by id and expected version. Returns false for each row whose version differs. */
  delete(tx: Transaction, rows: SqlRows): Promise<boolean[]>
}

export interface UpdatedColumns {
  /** The names of the columns; equal for updates with the same statement. */
  readonly key: string
  readonly columns: readonly JsonColumn[]
}

export interface RowListTable {
  /** Not quoted. */
  readonly name: string
  /** All columns besides `id` and `version`. */
  readonly columns: readonly JsonColumn[]
}

/** Inserts many rows into one table with few statements. */
export interface BulkInsert {
  run(tx: Transaction, rows: SqlRows): Promise<void>
  /** Sends the statements one after the other. */
  send(rows: SqlRows, send: SendStatement): Promise<void>
}

export interface BulkInsertTarget {
  /** Quoted. */
  readonly table: string
  readonly columns: readonly JsonColumn[]
  /** For the Log: the lock is acquired before the first row is inserted. */
  readonly log?: { readonly lock: Dialect['lockLog']; readonly timeColumn: string }
}

/** The differences between the engines, as data. */
export interface Dialect {
  readonly columns: Readonly<Record<Exclude<Storage, 'none'>, Column>>
  /** Folds the text of a column exactly as `foldText` does. */
  readonly fold: (column: string) => string
  /** The definition of an `id` column whose values are never reused. */
  readonly identity: string
  /** Makes a new table generate ids after this one. */
  readonly startIdsAfter: (table: string, id: number) => string
  /** Makes a table in use generate ids after this one. Never decreases the next id. */
  readonly advanceIds: (table: string, id: number, column?: string) => readonly string[]
  /** Selects the last id that the table has generated as `last`; no row or null if it has generated none. */
  readonly lastId: (table: string, column: string) => string
  /** Follows the column list of `create table`. */
  readonly tableSuffix: string
  /** Follows the column list of `create table` for counters, whose rows change often. */
  readonly counterSuffix: string
  /** Ends the column list of an index, so that equal entries are in the order of their ids. */
  readonly indexSuffix: string
  /** Blocks writers of the table until the transaction ends; runs before its records are counted. */
  readonly lockTable: (table: string) => readonly string[]
  /** Runs first in a transaction that changes tables, so that two starting nodes do so one after the other. */
  readonly lockSchema: readonly string[]
  /** Each statement returns problems with pages, indexes and references as `fault`; at most a limited number of them. */
  readonly integrityChecks: readonly { readonly name: string; readonly sql: string }[]
  /** Each statement returns a reason why this database cannot be used as `fault`. */
  readonly startupChecks: readonly string[]
  /** The tables for the content of files, with the statements that create those that do not exist. */
  readonly blobTables: Readonly<Record<string, string>>
  /** Other objects that the engine needs: `make` runs if `unless` returns no row. */
  readonly setUp: readonly { readonly unless: string; readonly make: string }[]
  /** Returns the `name` of each table that people or programs have made. */
  readonly listTables: string
  /** Returns a row if the table has the column; takes the names of both. */
  readonly findColumn: string
  /** Returns the `name` of each column in the order of the table; takes the name of the table. */
  readonly listColumns: string
  /** Returns a row if the index exists; takes its name. */
  readonly findIndex: string
  /** Follows a select: no other transaction can change these rows until this one ends. */
  readonly lockForUpdate: string
  /** Follows a select of referenced rows: other transactions can change them but not delete them. */
  readonly lockForReference: string
  /** Follows a select of rows that are only read: no transaction can change them, and others can take this lock, too. */
  readonly lockForShare: string
  /** Follows a select of rows that will be deleted: no other transaction can change them or add a reference to them. */
  readonly lockForRemoval: string
  readonly json: JsonSql
  /** A column as JSON text, identical to `JSON.stringify` of its decoded value; `null` for a null. */
  readonly toJson: Readonly<Partial<Record<Storage, (column: string) => string>>>
  /** A decimal column as text with all digits of its scale. */
  readonly decimalText: (column: string, scale: number) => string
  /** Run after many rows were inserted, so that plans fit them. */
  readonly afterLoad: readonly string[]
  /** True if the engine reuses the plan of a limited statement only if the text contains a limit. */
  readonly needsLiteralLimit: boolean
  /** True if reading a record as JSON text and parsing it is faster than decoding its columns. */
  readonly prefersJsonText: boolean
  /** True if `reader` runs statements in this process: a long one blocks the event loop, a short one is cheaper than in the query pool. */
  readonly readsBlockEventLoop: boolean
  /** True if a statement can wait for a row that another transaction has locked. */
  readonly waitsForRowLocks: boolean
  /** A condition on the rows `t` of a search in a transaction: it ends a statement that would block the event loop for too long. */
  readonly timeLimitCondition: string | undefined
  /** Joins the texts of the rows of a sorted select with commas, as text or bytes; null without rows. */
  readonly joinJson: (text: string, order: string) => string
  readonly createRowListWriter: (table: RowListTable) => RowListWriter
  readonly createBulkInsert: (target: BulkInsertTarget) => BulkInsert
  /** Surrounds each select that is inserted into the Log, so that numbers are in commit order. `raiseTime` does it for a time in milliseconds. */
  readonly lockLog: Readonly<Record<'with' | 'from', string>> & { readonly raiseTime: (ms: string) => string }
  /** `nowMs` is an expression. If the clock steps back further than `maxLeadMs`, stored times go back, too. */
  readonly clock: { readonly nowMs: string; readonly maxLeadMs: number }
}
