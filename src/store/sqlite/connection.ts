// A connection to the database file with its prepared statements, and transactions that yield to the event loop.
import { pathToFileURL } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import type { VersoError } from '../../errors.js'
import { foldText } from '../../model/values/text-folding.js'
import type { Row, SqlValue, SynchronousRead } from '../engine/database.js'
import { UnsharedTransaction } from '../engine/unshared.js'
import { padScale } from '../sql/column.js'
import { isImmutableFile } from './disk/write-access.js'
import { WalGuard } from './disk/wal-guard.js'
import { createBusyError, translateSqliteError } from './errors.js'
import { decodeDecimal } from './sortable-decimal.js'

/** A connection that may write keeps the WAL until the driver has finalized its statements. A read-only one cannot remove the WAL. */
class SqliteConnection extends DatabaseSync {
  readonly #walGuard: WalGuard | undefined

  constructor(location: string, readOnly: boolean) {
    // No busy timeout: SQLite would block the event loop while it waits. `retryWhileBusy` waits instead.
    super(location, { readOnly, timeout: 0 })
    this.#walGuard = readOnly ? undefined : new WalGuard(location)
  }

  override prepare(sql: string): PreparedStatement {
    const statement = super.prepare(sql)
    this.#walGuard?.add(statement)
    return statement
  }

  override close(): void {
    this.#walGuard?.hold()
    super.close()
  }
}

type PreparedStatement = ReturnType<InstanceType<typeof DatabaseSync>['prepare']>

const MAX_CACHED_STATEMENTS = 500
/** Longer statements are rarely repeated and would take too much memory. */
const MAX_CACHED_SQL_LENGTH = 10_000
/** The page cache of a connection. */
const READER_CACHE_KB = 8_000
const WRITER_CACHE_KB = 4_000

/** Opens a file that cannot be written as immutable: SQLite can create no WAL for it. */
export function openConnection(file: string, readOnly: boolean): SqliteConnection {
  const isImmutable = isImmutableFile(file)
  const location = isImmutable ? `${pathToFileURL(file).href}?immutable=1` : file
  const connection = new SqliteConnection(location, readOnly || isImmutable)
  try {
    if (!readOnly && !isImmutable) connection.exec('pragma journal_mode = wal')
    // SQLite opens an existing WAL database with a weaker setting, with which a power cut loses acknowledged commits.
    connection.exec('pragma synchronous = full')
    connection.exec('pragma foreign_keys = on')
    connection.exec('pragma temp_store = memory')
    connection.exec(`pragma cache_size = -${readOnly ? READER_CACHE_KB : WRITER_CACHE_KB}`)
    assertPragma(connection, 'synchronous', 2)
    if (!isImmutable) assertPragma(connection, 'journal_mode', 'wal')
    connection.function('verso_fold', { deterministic: true }, (value: SqlValue) =>
      typeof value === 'string' ? foldText(value) : value,
    )
    connection.function('verso_decimal', { deterministic: true }, (value: SqlValue, scale: SqlValue) =>
      typeof value === 'string' ? padScale(decodeDecimal(value), Number(scale)) : null,
    )
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

function assertPragma(connection: SqliteConnection, name: string, expected: SqlValue): void {
  const [row] = connection.prepare(`pragma ${name}`).all() as Record<string, SqlValue>[]
  const actual = row?.[name]
  if (actual !== expected)
    throw new Error(`SQLite did not set ${name} to ${expected}: it is ${String(actual)}`)
}

/** The longest time that a transaction blocks the event loop before it yields. */
const MAX_SLICE_MS = 10

/** A transaction that yields to the event loop between statements, because statements are synchronous. */
export class YieldingTransaction extends UnsharedTransaction {
  statementCount = 0
  #sliceStartMs = 0
  #writeCount = 0
  #writeCountAtBegin = 0

  constructor(private readonly session: SqliteSession) {
    super()
  }

  /** The number of statements that may have written something. Failed statements have written nothing. */
  get writeCount(): number {
    return this.#writeCount
  }

  /** True if the transaction may have written something. */
  get hasWritten(): boolean {
    return this.#writeCount !== this.#writeCountAtBegin
  }

  /** Must be called at the beginning of each transaction. */
  begin(): void {
    this.#sliceStartMs = performance.now()
    this.#writeCountAtBegin = this.#writeCount
  }

  async all(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    this.statementCount++
    if (this.#mustYield()) await this.#yield()
    return this.session.all(sql, params)
  }

  async run(sql: string, params?: readonly SqlValue[]): Promise<number> {
    this.statementCount++
    if (this.#mustYield()) await this.#yield()
    const changed = this.session.run(sql, params)
    this.#writeCount++
    return changed
  }

  async insert(sql: string, params?: readonly SqlValue[]): Promise<number> {
    this.statementCount++
    if (this.#mustYield()) await this.#yield()
    const id = this.session.insert(sql, params)
    this.#writeCount++
    return id
  }

  #mustYield(): boolean {
    return performance.now() - this.#sliceStartMs >= MAX_SLICE_MS
  }

  async #yield(): Promise<void> {
    await new Promise(setImmediate)
    this.#sliceStartMs = performance.now()
  }
}

/** A search in a transaction runs in this process. It may block the event loop for this long. */
const SEARCH_LIMIT_MS = 500

/** Checks the time of a search once for this many records. A call into JavaScript costs 0.4 µs. */
const RECORDS_PER_CHECK = 64

/** Ends a search in a transaction after its time limit. `t` is the alias of its rows. */
export const SEARCH_LIMIT_SQL = `((t."id" & ${RECORDS_PER_CHECK - 1}) <> 0 or verso_is_in_time())`

/** A connection with its prepared statements, the most recently used ones. */
export class SqliteSession {
  readonly #statements = new Map<string, PreparedStatement>()

  #connection: SqliteConnection
  /** When the current statement has first checked its time; 0 before. */
  #firstCheckMs = 0
  #isLate = false

  constructor(
    connection: SqliteConnection,
    /** Called for each error of a statement. */
    private readonly onError: (error: unknown) => void = () => undefined,
  ) {
    this.#connection = connection
    this.#registerTimeLimit()
  }

  get connection(): SqliteConnection {
    return this.#connection
  }

  /** Runs synchronous work on one snapshot. */
  readInSnapshot<T>(work: (all: SynchronousRead) => T): T {
    return this.withSnapshot(() => work((sql, params) => this.all(sql, params)))
  }

  /** Takes the read lock once for all statements that the work runs before it returns. */
  withSnapshot<T>(work: () => T): T {
    if (this.#isInTransaction()) return work()
    this.exec('begin')
    try {
      return work()
    } finally {
      // A disk failure may have ended the transaction already.
      if (this.#isInTransaction()) this.#endSnapshot()
    }
  }

  /** After a read of a damaged page, COMMIT fails with the error of that read. There is nothing to commit, so a rollback suffices. */
  #endSnapshot(): void {
    try {
      this.#prepare('commit').run()
    } catch {
      if (this.#isInTransaction()) this.connection.exec('rollback')
    }
  }

  #isInTransaction(): boolean {
    return this.connection.isTransaction
  }

  all(sql: string, params: readonly SqlValue[] = []): Row[] {
    try {
      this.#firstCheckMs = 0
      // Only for reads: on a statement that writes, `.all()` hides the error code and `.get()` hides the error.
      return this.#prepare(sql).all(...params) as Row[]
    } catch (error) {
      if (this.#isLate) throw this.#createLateError()
      throw this.#translateAndReport(error)
    }
  }

  #registerTimeLimit(): void {
    this.#connection.function('verso_is_in_time', {}, () => {
      const nowMs = performance.now()
      if (this.#firstCheckMs === 0) this.#firstCheckMs = nowMs
      this.#isLate = nowMs - this.#firstCheckMs > SEARCH_LIMIT_MS
      if (this.#isLate) throw new Error('the search takes too long')
      return 1
    })
  }

  #createLateError(): VersoError {
    this.#isLate = false
    return createBusyError(
      `A search in a transaction took more than ${SEARCH_LIMIT_MS} ms: filter by an indexed field, or search before the transaction; nothing was changed`,
    )
  }

  run(sql: string, params: readonly SqlValue[] = []): number {
    try {
      return this.#prepare(sql).run(...params).changes
    } catch (error) {
      throw this.#translateAndReport(error)
    }
  }

  insert(sql: string, params: readonly SqlValue[] = []): number {
    try {
      return Number(this.#prepare(sql).run(...params).lastInsertRowid)
    } catch (error) {
      throw this.#translateAndReport(error)
    }
  }

  exec(sql: string): void {
    try {
      this.#prepare(sql).run()
    } catch (error) {
      throw this.#translateAndReport(error)
    }
  }

  #translateAndReport(error: unknown): unknown {
    const translated = translateSqliteError(error)
    this.onError(translated)
    return translated
  }

  /** Copies the WAL into the main file. SQLite does not do so on `close`, because the driver keeps prepared statements open. */
  checkpoint(): void {
    // While another process reads, SQLite copies only a part and reports no error. Nothing is lost.
    this.connection.exec('pragma wal_checkpoint(truncate)')
  }

  close(): void {
    this.#statements.clear()
    this.connection.close()
  }

  /** Continues with another connection. There must be no open transaction. */
  replaceConnection(connection: SqliteConnection): void {
    this.close()
    this.#connection = connection
    this.#registerTimeLimit()
  }

  #prepare(sql: string): PreparedStatement {
    const cached = this.#statements.get(sql)
    if (cached) {
      // The order of use matters only when the cache is nearly full.
      if (this.#statements.size < MAX_CACHED_STATEMENTS / 2) return cached
      this.#statements.delete(sql)
      this.#statements.set(sql, cached)
      return cached
    }
    const statement = this.connection.prepare(sql)
    if (sql.length > MAX_CACHED_SQL_LENGTH) return statement
    this.#statements.set(sql, statement)
    const [oldest] = this.#statements.keys()
    if (this.#statements.size > MAX_CACHED_STATEMENTS && oldest !== undefined) this.#statements.delete(oldest)
    return statement
  }
}
