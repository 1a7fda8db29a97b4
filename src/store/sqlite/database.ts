import { stat, statfs } from 'node:fs/promises'
import path from 'node:path'
import type { VersoError } from '../../errors.js'
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
import type { DatabaseMeasures } from '../engine/measures.js'
import { MAX_TIMER_MS, Semaphore } from '../engine/semaphore.js'
import { UnsharedQueryable } from '../engine/unshared.js'
import type { UnwritableState } from '../engine/write-health.js'
import { SqliteBlobStore } from './blobs.js'
import { SqliteCommitNotifier } from './commits.js'
import { YieldingTransaction, type SqliteSession } from './connection.js'
import type { SqliteSessions } from './connections.js'
import { sqliteDialect } from './dialect.js'
import {
  BUSY_TIMEOUT_MS,
  computeBusyDeadline,
  createBusyError,
  createClosedError,
  isBusy,
  isEngineError,
  retryWhileBusy,
  translateSqliteError,
} from './errors.js'
import type { SqliteQueryPool } from './query-pool.js'

const MAX_QUEUED_TRANSACTIONS = 10_000
const LONG_BUSY_TIMEOUT_MS = 60_000

/**
 * Runs the transactions of group commit on the one connection that writes, so there is one slot. All of them join a group. A savepoint is
 * needed only if a member fails after it has written, so the first attempt uses none.
 */
export class SqliteWriter implements GroupEngine, OpenTransaction {
  readonly modes = ['in-order', 'savepoints'] as const
  readonly maxMembers = 256
  /** A transaction has its own deadline and waits for others without a limit. */
  readonly slots = new Semaphore(1, MAX_TIMER_MS, createFullQueueError)
  readonly tx: YieldingTransaction
  readonly groupCommit: GroupCommit
  #isClosed = false
  private readonly writer: SqliteSession

  constructor(
    private readonly sessions: SqliteSessions,
    /** Called after each commit. */
    private readonly onCommitted: () => void,
  ) {
    this.writer = sessions.writer
    this.tx = new YieldingTransaction(this.writer)
    this.groupCommit = new GroupCommit(this)
  }

  /** The number of waiting transactions. */
  get pending(): number {
    return this.groupCommit.pending
  }

  get writeCount(): number {
    return this.tx.writeCount
  }

  get isActive(): boolean {
    return this.writer.connection.isTransaction
  }

  async run<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions): Promise<T> {
    return this.groupCommit.run(work, options)
  }

  /** Rejects further transactions and waits for those in the queue. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.groupCommit.drain()
  }

  requireAdmission(queuedCount: number): void {
    if (this.#isClosed) throw createClosedError()
    if (queuedCount >= MAX_QUEUED_TRANSACTIONS) throw createFullQueueError()
  }

  isEngineError(error: unknown): boolean {
    return isEngineError(error)
  }

  onMembersDone(): void {
    // SQLite needs no preparation for the handlers.
  }

  async runAlone(member: GroupMember): Promise<unknown> {
    const { isNecessary = false } = member.options
    const wasFull = this.#isFull()
    try {
      return await this.#runInTransaction(member, isNecessary)
    } catch (error) {
      // This write met the full disk, and has released the reserve.
      if (!isNecessary || wasFull || !this.#isFull()) throw error
      return this.#runInTransaction(member, isNecessary)
    }
  }

  #isFull(): boolean {
    return this.sessions.writeHealth.unwritable?.kind === 'full'
  }

  async #runInTransaction(member: GroupMember, isNecessary: boolean): Promise<unknown> {
    let value: unknown
    try {
      await this.#begin(computeDeadline(member), isNecessary)
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
      await this.#begin(
        Math.min(...members.map(computeDeadline)),
        members.every(({ options }) => options.isNecessary),
      )
      result = await work(this)
      this.writer.exec('commit')
    } catch {
      this.#rollback()
      return undefined
    }
    this.#afterCommit()
    return result
  }

  async #begin(deadline: number, isNecessary: boolean): Promise<void> {
    this.sessions.requireHealthy(isNecessary)
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
    if (this.tx.hasWritten) {
      this.sessions.noteCommit()
      if (writeHealth.unwritable) writeHealth.clear('read-only')
    }
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

function createFullQueueError(): VersoError {
  return createBusyError(
    'Too many writes are waiting: retry after the seconds in Retry-After; nothing was changed',
  )
}

function computeDeadline({ queuedAtMs, options }: GroupMember): number {
  return queuedAtMs + (options.isLong ? LONG_BUSY_TIMEOUT_MS : BUSY_TIMEOUT_MS)
}

export class SqliteDatabase implements Database {
  readonly dialect = sqliteDialect
  readonly reader: SqliteReader
  readonly blobs: SqliteBlobStore
  readonly commits: SqliteCommitNotifier
  #closing: Promise<void> | undefined
  readonly #writer: SqliteWriter

  constructor(
    private readonly file: string,
    private readonly sessions: SqliteSessions,
    readonly queryPool: SqliteQueryPool,
    private readonly onClosed?: () => void,
  ) {
    this.reader = new SqliteReader(sessions.reader)
    this.blobs = new SqliteBlobStore(`${path.resolve(file)}.files`, this)
    this.commits = new SqliteCommitNotifier(() => sessions.readDataVersion())
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

  measure: Database['measure'] = () => measureFiles(this.file, this.#writer.groupCommit.sizes)

  async close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    // Before the writer closes: the blob store may still have to write.
    await this.blobs.close()
    this.commits.close()
    await Promise.all([this.#writer.close(), this.queryPool.close()])
    await this.sessions.close()
    this.onClosed?.()
  }
}

/** Asks the file system for the sizes: a descriptor of the database file must not be opened beside SQLite. */
async function measureFiles(
  file: string,
  groupSizes: DatabaseMeasures['groupSizes'],
): Promise<DatabaseMeasures> {
  const [database, wal, disk] = await Promise.all([
    stat(file),
    // The file exists from the first write until the last connection closes.
    stat(`${file}-wal`).catch(() => ({ size: 0 })),
    statfs(path.dirname(file)),
  ])
  // The room for users without privileges.
  const free = disk.bavail * disk.bsize
  return { groupSizes, bytes: { database: database.size, wal: wal.size, free } }
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
      return retryWhileBusy(computeBusyDeadline(), () => this.session.all(sql, params))
    }
  }

  override readInSnapshot<T>(work: (all: SynchronousRead) => T): Promise<T> {
    return retryWhileBusy(computeBusyDeadline(), () => this.session.readInSnapshot(work))
  }

  override withSnapshot(work: () => void): void {
    // After close, each statement of the work fails with an error of its own.
    if (this.session.connection.isOpen) this.session.withSnapshot(work)
    else work()
  }
}
