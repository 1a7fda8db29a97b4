import { pathToFileURL } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import { foldText } from '../../model/values/text-folding.js'
import type { Row, SqlValue, Transaction } from '../engine/database.js'
import { isImmutableFile } from './file-access.js'
import { translateSqliteError } from './errors.js'

type SqliteConnection = InstanceType<typeof DatabaseSync>
type PreparedStatement = ReturnType<SqliteConnection['prepare']>

const MAX_CACHED_STATEMENTS = 500
/** Longer ones are seldom asked again, and would fill the memory. */
const MAX_CACHED_SQL_LENGTH = 10_000
/** Pages that a connection keeps in memory, so that records which are read again are not read from the file. */
const READER_CACHE_KB = 8_000
const WRITER_CACHE_KB = 4_000

/** A file that nobody can write has no WAL, and SQLite cannot make one: it is read without. */
export function openConnection(file: string, readOnly: boolean): SqliteConnection {
  const isImmutable = isImmutableFile(file)
  const location = isImmutable ? `${pathToFileURL(file).href}?immutable=1` : file
  // No busy time-out: SQLite would wait by holding the event loop. See `patiently`.
  const connection = new DatabaseSync(location, { readOnly: readOnly || isImmutable, timeout: 0 })
  try {
    if (!readOnly && !isImmutable) connection.exec('pragma journal_mode = wal')
    // An existing database in WAL mode is opened with less; then a power cut loses what was acknowledged.
    connection.exec('pragma synchronous = full')
    connection.exec('pragma foreign_keys = on')
    connection.exec('pragma temp_store = memory')
    connection.exec(`pragma cache_size = -${readOnly ? READER_CACHE_KB : WRITER_CACHE_KB}`)
    assertPragma(connection, 'synchronous', 2)
    if (!isImmutable) assertPragma(connection, 'journal_mode', 'wal')
    connection.function('verso_fold', { deterministic: true }, (value: SqlValue) =>
      typeof value === 'string' ? foldText(value) : value,
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
    throw new Error(`SQLite would not set ${name} to ${expected}: it is ${String(actual)}`)
}

/** How long a transaction may hold the event loop at a time. */
const MAX_SLICE_MS = 10

/** Lets others have their turn: statements are synchronous, and a long row of them would hold the loop. */
export class YieldingTransaction implements Transaction {
  #sliceStartMs = 0
  #writeCount = 0
  #writeCountAtBegin = 0

  constructor(private readonly session: SqliteSession) {}

  /** Grows with every statement that may have written something. One that failed has written nothing. */
  get writeCount(): number {
    return this.#writeCount
  }

  /** True if the transaction may have written something. */
  get hasWritten(): boolean {
    return this.#writeCount !== this.#writeCountAtBegin
  }

  /** With the beginning of a transaction its turn begins. */
  begin(): void {
    this.#sliceStartMs = performance.now()
    this.#writeCountAtBegin = this.#writeCount
  }

  async all(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    if (this.#mustYield()) await this.#yield()
    return this.session.all(sql, params)
  }

  async run(sql: string, params?: readonly SqlValue[]): Promise<number> {
    if (this.#mustYield()) await this.#yield()
    const changed = this.session.run(sql, params)
    this.#writeCount++
    return changed
  }

  async insert(sql: string, params?: readonly SqlValue[]): Promise<number> {
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

/** A connection with its prepared statements, the most recently used ones. */
export class SqliteSession {
  readonly #statements = new Map<string, PreparedStatement>()

  #connection: SqliteConnection

  constructor(
    connection: SqliteConnection,
    /** Told of each error of a statement. */
    private readonly onError: (error: unknown) => void = () => undefined,
  ) {
    this.#connection = connection
  }

  get connection(): SqliteConnection {
    return this.#connection
  }

  /** What the work reads is of one moment, and nobody comes in between. */
  readInSnapshot<T>(work: (all: (sql: string, params: readonly SqlValue[]) => Row[]) => T): T {
    return this.withSnapshot(() => work((sql, params) => this.all(sql, params)))
  }

  /** The locks of a reader are taken once for all that the work reads before it returns. */
  withSnapshot<T>(work: () => T): T {
    if (this.#isInTransaction()) return work()
    this.exec('begin')
    try {
      return work()
    } finally {
      // A failing disk ends it, too.
      if (this.#isInTransaction()) this.#endSnapshot()
    }
  }

  /** After a read that met a damaged page COMMIT fails with the error of that read. There is nothing to commit. */
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
      // Only for reading: on a statement that writes, `.all()` hides the error's code and `.get()` hides the error.
      return this.#prepare(sql).all(...params) as Row[]
    } catch (error) {
      throw this.#translateAndReport(error)
    }
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

  /** Brings everything into the main file. The driver keeps prepared statements past `close`, so SQLite would not do it there. */
  checkpoint(): void {
    // Where another process is reading this does less, and answers so: nothing is lost.
    this.connection.exec('pragma wal_checkpoint(truncate)')
  }

  close(): void {
    this.#statements.clear()
    this.connection.close()
  }

  /** Goes on with another connection. Nothing may be in a transaction. */
  replaceConnection(connection: SqliteConnection): void {
    this.close()
    this.#connection = connection
  }

  #prepare(sql: string): PreparedStatement {
    const cached = this.#statements.get(sql)
    if (cached) {
      // Which ones were used last matters only where some may have to go.
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
