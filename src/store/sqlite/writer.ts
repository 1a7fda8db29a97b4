// The writer of the SQLite engine: runs the transactions of group commit on one connection.
import type { Transaction, TransactionOptions } from '../engine/database.js'
import { GroupCommit, type GroupEngine } from '../engine/group-commit.js'
import type { GroupMember, OpenTransaction } from '../engine/group-transaction.js'
import { Semaphore } from '../engine/semaphore.js'
import { YieldingTransaction, type SqliteSession } from './connection.js'
import type { SqliteSessions } from './connections.js'
import {
  BUSY_TIMEOUT_MS,
  createBusyError,
  createClosedError,
  isBusy,
  isEngineError,
  retryWhileBusy,
  translateSqliteError,
} from './errors.js'

const MAX_QUEUED_TRANSACTIONS = 10_000
const LONG_BUSY_TIMEOUT_MS = 60_000
/** The longest delay of a timer in Node. A transaction has its own deadline and waits for others without a limit. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * All transactions join a group. A savepoint is needed only if a member fails after it has written, so the first attempt uses none. There is
 * one connection that writes, so there is one slot.
 */
export class SqliteWriter implements GroupEngine, OpenTransaction {
  readonly modes = ['in-order', 'savepoints'] as const
  readonly maxMembers = 256
  readonly slots = new Semaphore(1, MAX_TIMER_MS, () => createBusyError('Too many writes are waiting'))
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
    if (queuedCount >= MAX_QUEUED_TRANSACTIONS) throw createBusyError('Too many writes are waiting')
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
