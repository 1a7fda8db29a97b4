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
import { GroupCommit, type GroupEngine } from '../engine/group-commit.js'
import type { GroupMember, OpenTransaction } from '../engine/group-transaction.js'
import { Semaphore } from '../engine/semaphore.js'
import { UnsharedQueryable } from '../engine/unshared.js'
import { makeFolder } from './blob-folder.js'
import { makeDatabasePrivate } from '../engine/private-files.js'
import { SqliteCommitNotifier } from './commits.js'
import { YieldingTransaction, type SqliteSession } from './connection.js'
import { SqliteBlobStore } from './blobs.js'
import { sqliteDialect } from './dialect.js'
import {
  BUSY_TIMEOUT_MS,
  createBusyError,
  createClosedError,
  isBusy,
  isEngineError,
  retryWhileBusy,
  translateSqliteError,
} from './errors.js'
import { SqliteQueryPool } from './query-pool.js'
import { SqliteSessions } from './connections.js'

const DEFAULT_STATEMENT_TIMEOUT_MS = 10_000
const MAX_QUEUED_TRANSACTIONS = 10_000
const LONG_BUSY_TIMEOUT_MS = 60_000
/** The longest delay of a timer in Node. A transaction has its own deadline and waits for others without a limit. */
const MAX_TIMER_MS = 2 ** 31 - 1

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

export async function openSqlite(
  file: string,
  options: SqliteOptions = {},
  onClosed?: () => void,
): Promise<Database> {
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
  return new SqliteDatabase(file, sessions, queryPool, onClosed)
}

class SqliteReader extends UnsharedQueryable {
  constructor(private readonly session: SqliteSession) {
    super()
  }

  async all(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    try {
      return this.session.all(sql, params)
    } catch (error) {
      if (!this.session.connection.isOpen) throw createClosedError()
      // The first attempt nearly always succeeds, and this way costs nothing extra.
      if (!isBusy(error)) throw error
      return retryWhileBusy(Date.now() + BUSY_TIMEOUT_MS, () => this.session.all(sql, params))
    }
  }

  override readInSnapshot<T>(work: (all: SynchronousRead) => T): Promise<T> {
    return retryWhileBusy(Date.now() + BUSY_TIMEOUT_MS, () => this.session.readInSnapshot(work))
  }

  override withSnapshot(work: () => void): void {
    // After close, each statement of the work fails with an error of its own.
    if (this.session.connection.isOpen) this.session.withSnapshot(work)
    else work()
  }
}

/**
 * Runs the transactions of group commit on the one connection that writes, so there is one slot. All of them join a group. A savepoint is
 * needed only if a member fails after it has written, so the first attempt uses none.
 */
export class SqliteWriter implements GroupEngine, OpenTransaction {
  readonly modes = ['in-order', 'savepoints'] as const
  readonly maxMembers = 256
  readonly slots = new Semaphore(1, MAX_TIMER_MS, () =>
    createBusyError(
      'Too many writes are waiting: retry after the seconds in Retry-After; nothing was changed',
    ),
  )
  readonly tx: YieldingTransaction
  readonly #groupCommit: GroupCommit
  #isClosed = false
  private readonly writer: SqliteSession

  constructor(
    private readonly sessions: SqliteSessions,
    /** Called after each commit. */
    private readonly onCommitted: () => void,
  ) {
    this.writer = sessions.writer
    this.tx = new YieldingTransaction(this.writer)
    this.#groupCommit = new GroupCommit(this)
  }

  /** The number of waiting transactions. */
  get pending(): number {
    return this.#groupCommit.pending
  }

  get writeCount(): number {
    return this.tx.writeCount
  }

  get isActive(): boolean {
    return this.writer.connection.isTransaction
  }

  async run<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions): Promise<T> {
    return this.#groupCommit.run(work, options)
  }

  /** Rejects further transactions and waits for those in the queue. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#groupCommit.drain()
  }

  requireAdmission(queuedCount: number): void {
    if (this.#isClosed) throw createClosedError()
    if (queuedCount >= MAX_QUEUED_TRANSACTIONS)
      throw createBusyError(
        'Too many writes are waiting: retry after the seconds in Retry-After; nothing was changed',
      )
  }

  isEngineError(error: unknown): boolean {
    return isEngineError(error)
  }

  onMembersDone(): void {
    // SQLite needs no preparation for the handlers.
  }

  async runAlone(member: GroupMember): Promise<unknown> {
    let value: unknown
    try {
      await this.#begin(computeDeadline(member))
      value = await member.work(this.tx)
      this.writer.exec('commit')
    } catch (error) {
      this.#rollback()
      throw translateSqliteError(error)
    }
    this.#afterCommit()
    return value
  }

  /** If it fails, the session has reported the error, and each member fails with its own error later. */
  async runShared<T>(
    members: readonly GroupMember[],
    work: (open: OpenTransaction) => Promise<T>,
  ): Promise<T | undefined> {
    let result: T
    try {
      await this.#begin(Math.min(...members.map(computeDeadline)))
      result = await work(this)
      this.writer.exec('commit')
    } catch {
      this.#rollback()
      return undefined
    }
    this.#afterCommit()
    return result
  }

  async #begin(deadline: number): Promise<void> {
    this.sessions.requireHealthy()
    try {
      this.writer.exec('begin immediate')
    } catch (error) {
      if (!isBusy(error)) throw error
      await retryWhileBusy(deadline, () => {
        this.writer.exec('begin immediate')
      })
    }
    this.tx.begin()
  }

  /** Runs outside of the blocks that roll back: a committed group must not run again. */
  #afterCommit(): void {
    const { writeHealth } = this.sessions
    if (writeHealth.unwritable && this.tx.hasWritten) writeHealth.clearReadOnly()
    this.onCommitted()
  }

  /** Never throws, because the caller must still settle its members. */
  #rollback(): void {
    try {
      if (this.isActive) this.writer.connection.exec('rollback')
    } catch (error) {
      this.sessions.writeHealth.report('failed', error)
    }
  }
}

function computeDeadline({ queuedAtMs, options }: GroupMember): number {
  return queuedAtMs + (options.isLong ? LONG_BUSY_TIMEOUT_MS : BUSY_TIMEOUT_MS)
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
    private readonly onClosed?: () => void,
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
    this.onClosed?.()
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
