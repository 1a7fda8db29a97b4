// The embedded engine: one writing connection with group commit, one reading connection, and long queries in worker processes.
import path from 'node:path'
import type { OnWriteHealthChange, UnwritableState } from '../engine/write-health.js'
import type {
  Database,
  Gauges,
  Row,
  SqlValue,
  SynchronousRead,
  Transaction,
  TransactionOptions,
} from '../engine/database.js'
import { UnsharedQueryable } from '../engine/unshared.js'
import { makeFolder } from './blob-folder.js'
import { makeDatabasePrivate } from '../engine/private-files.js'
import { SqliteCommitNotifier } from './commits.js'
import type { SqliteSession } from './connection.js'
import { SqliteBlobStore } from './blobs.js'
import { sqliteDialect } from './dialect.js'
import { BUSY_TIMEOUT_MS, isBusy, retryWhileBusy } from './errors.js'
import { SqliteQueryPool } from './query-pool.js'
import { SqliteSessions } from './connections.js'
import { SqliteWriter } from './writer.js'

const DEFAULT_STATEMENT_TIMEOUT_MS = 10_000

export interface SqliteOptions {
  /** The time limit of a query, including its time in the queue. */
  readonly statementTimeoutMs?: number
  /** Called once when the disk has failed. The state in memory and on disk may differ, so the process must restart. */
  readonly onBroken?: (error: unknown) => void
  /** Called when the database starts to reject writes, and when it accepts them again. */
  readonly onWriteHealthChange?: OnWriteHealthChange
  /** Called for each file from which the permissions of other users were removed. */
  readonly onModeNarrowed?: (file: string) => void
}

export async function openSqlite(file: string, options: SqliteOptions = {}): Promise<Database> {
  makeFolder(path.resolve(path.dirname(file)))
  makeDatabasePrivate(file, options.onModeNarrowed)
  const onWriteHealthChange: OnWriteHealthChange = (unwritable, error) => {
    options.onWriteHealthChange?.(unwritable, error)
    if (unwritable?.kind === 'failed') options.onBroken?.(error)
  }
  const sessions = await SqliteSessions.open(file, Date.now() + BUSY_TIMEOUT_MS, onWriteHealthChange, () => {
    queryPool.restart()
  })
  const queryPool = new SqliteQueryPool(
    path.resolve(file),
    options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS,
    (error) => {
      sessions.reportDamage(error)
    },
  )
  return new SqliteDatabase(file, sessions, queryPool)
}

class SqliteReader extends UnsharedQueryable {
  constructor(private readonly session: SqliteSession) {
    super()
  }

  async all(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    try {
      return this.session.all(sql, params)
    } catch (error) {
      // The first attempt nearly always succeeds, and this way costs nothing extra.
      if (!isBusy(error)) throw error
      return retryWhileBusy(Date.now() + BUSY_TIMEOUT_MS, () => this.session.all(sql, params))
    }
  }

  override readInSnapshot<T>(work: (all: SynchronousRead) => T): Promise<T> {
    return retryWhileBusy(Date.now() + BUSY_TIMEOUT_MS, () => this.session.readInSnapshot(work))
  }

  override withSnapshot(work: () => void): void {
    this.session.withSnapshot(work)
  }
}

class SqliteDatabase implements Database {
  readonly dialect = sqliteDialect
  readonly reader: SqliteReader
  readonly blobs: SqliteBlobStore
  readonly commits: SqliteCommitNotifier
  #closing: Promise<void> | undefined
  readonly #writer: SqliteWriter

  constructor(
    file: string,
    private readonly sessions: SqliteSessions,
    readonly queryPool: SqliteQueryPool,
  ) {
    const { reader: readerSession } = sessions
    this.reader = new SqliteReader(readerSession)
    this.blobs = new SqliteBlobStore(`${path.resolve(file)}.files`, this)
    this.commits = new SqliteCommitNotifier(() => readDataVersion(readerSession))
    this.#writer = new SqliteWriter(sessions, () => {
      this.commits.publish()
    })
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    return this.#writer.run(work, options)
  }

  async writability(): Promise<UnwritableState | undefined> {
    this.sessions.probe()
    return Promise.resolve(this.sessions.writeHealth.unwritable)
  }

  gauges(): Gauges {
    return {
      ...this.queryPool.gauges(),
      writesPending: this.#writer.pending,
      uploadsPending: this.blobs.countPending(),
    }
  }

  async close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    // Before the writer closes: the blob store may still have to write.
    await this.blobs.close()
    this.commits.close()
    await Promise.all([this.#writer.close(), this.queryPool.close()])
    this.sessions.close()
  }
}

function readDataVersion(session: SqliteSession): number | undefined {
  try {
    const [row] = session.connection.prepare('pragma data_version').all() as { data_version: number }[]
    return row?.data_version
  } catch {
    return undefined
  }
}
