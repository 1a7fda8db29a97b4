// The embedded engine: one writing connection with group commit, one reading connection, and long queries in worker processes.
import path from 'node:path'
import { VersoError } from '../../errors.js'
import type { OnWriteHealthChange, UnwritableState } from '../engine/database-condition.js'
import type {
  Database,
  Gauges,
  GroupableWrite,
  Queryable,
  Transaction,
  TransactionOptions,
} from '../engine/database.js'
import { makeFolder } from './blob-folder.js'
import { makeDatabasePrivate } from '../engine/private-files.js'
import { SqliteCommitNotifier } from './commits.js'
import { YieldingTransaction, type SqliteSession } from './connection.js'
import { SqliteBlobStore } from './blobs.js'
import { sqliteDialect } from './dialect.js'
import { isBusy, isEngineError, retryWhileBusy, translateSqliteError } from './errors.js'
import { SqliteGroupTransaction } from './grouped-transaction.js'
import { SqliteQueryPool } from './query-pool.js'
import { SqliteSessions } from './connections.js'

const MAX_GROUP_TRANSACTIONS = 256
const MAX_QUEUED_TRANSACTIONS = 10_000
const BUSY_TIMEOUT_MS = 5_000
const LONG_BUSY_TIMEOUT_MS = 60_000
const DEFAULT_STATEMENT_TIMEOUT_MS = 10_000

interface QueuedTransaction {
  readonly work: (tx: Transaction) => Promise<unknown>
  readonly groupable: GroupableWrite | undefined
  readonly deadline: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

type TransactionOutcome = { readonly member: QueuedTransaction } & (
  { readonly value: unknown } | { readonly error: unknown }
)

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

class SqliteDatabase implements Database {
  readonly dialect = sqliteDialect
  readonly reader: Queryable
  readonly blobs: SqliteBlobStore
  readonly commits: SqliteCommitNotifier
  readonly #queue: QueuedTransaction[] = []
  #draining: Promise<void> | undefined
  #isClosed = false
  #closing: Promise<void> | undefined

  private readonly writer: SqliteSession
  readonly #yieldingTransaction: YieldingTransaction

  constructor(
    file: string,
    private readonly sessions: SqliteSessions,
    readonly queryPool: SqliteQueryPool,
  ) {
    const { reader: readerSession } = sessions
    this.writer = sessions.writer
    this.#yieldingTransaction = new YieldingTransaction(this.writer)
    this.reader = {
      all: async (sql, params) => {
        try {
          return readerSession.all(sql, params)
        } catch (error) {
          // The first attempt nearly always succeeds, and this way costs nothing extra.
          if (!isBusy(error)) throw error
          return retryWhileBusy(Date.now() + BUSY_TIMEOUT_MS, () => readerSession.all(sql, params))
        }
      },
      readInSnapshot: (work) =>
        retryWhileBusy(Date.now() + BUSY_TIMEOUT_MS, () => readerSession.readInSnapshot(work)),
      withSnapshot: (work) => {
        readerSession.withSnapshot(work)
      },
    }
    this.blobs = new SqliteBlobStore(`${path.resolve(file)}.files`, this)
    this.commits = new SqliteCommitNotifier(() => readDataVersion(readerSession))
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    if (this.#isClosed) throw new VersoError('busy', 'The database is closed', { retryAfterS: 1 })
    if (this.#queue.length >= MAX_QUEUED_TRANSACTIONS)
      throw new VersoError('busy', 'Too many writes are waiting', { retryAfterS: 1 })
    return new Promise<T>((resolve, reject) => {
      const deadline = Date.now() + (options.isLong ? LONG_BUSY_TIMEOUT_MS : BUSY_TIMEOUT_MS)
      this.#queue.push({
        work,
        groupable: options.groupable,
        deadline,
        resolve: (value) => {
          resolve(value as T)
        },
        reject,
      })
      this.#draining ??= this.#drainQueue()
    })
  }

  async writability(): Promise<UnwritableState | undefined> {
    this.sessions.probe()
    return Promise.resolve(this.sessions.writeHealth.unwritable)
  }

  gauges(): Gauges {
    return {
      ...this.queryPool.gauges(),
      writesPending: this.#queue.length,
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
    this.#isClosed = true
    await Promise.all([this.#draining, this.queryPool.close()])
    this.sessions.close()
  }

  async #drainQueue(): Promise<void> {
    // Requests that have arrived already are read first, so their writes join the group.
    await new Promise(setImmediate)
    while (this.#queue.length > 0) await this.#commitGroup(this.#queue.splice(0, MAX_GROUP_TRANSACTIONS))
    this.#draining = undefined
  }

  /**
   * Runs all members in one transaction, and each in its own if that fails. No member is settled before the COMMIT. A savepoint costs as
   * much as a write and is needed only if a member fails after it has written, so the first attempt uses none.
   */
  async #commitGroup(group: readonly QueuedTransaction[]): Promise<void> {
    const outcomes = (await this.#tryGroup(group, false)) ?? (await this.#tryGroup(group, true))
    if (outcomes) outcomes.forEach(settleTransaction)
    else for (const member of group) settleTransaction(await this.#runAlone(member))
    this.commits.publish()
  }

  async #tryGroup(
    group: readonly QueuedTransaction[],
    hasSavepoints: boolean,
  ): Promise<TransactionOutcome[] | undefined> {
    const [only] = group
    if (group.length === 1 && only) return [await this.#runAlone(only)]
    try {
      await this.#begin(Math.min(...group.map((member) => member.deadline)))
    } catch {
      return undefined // Each member then runs alone and fails with its own error.
    }
    const outcomes: TransactionOutcome[] = []
    const grouped = new SqliteGroupTransaction(this.#yieldingTransaction)
    for (const member of group) {
      const outcome = await (hasSavepoints ? this.#runInSavepoint(member) : this.#runInGroup(member, grouped))
      // A full disk rolls back the whole transaction, not only the savepoint, so nothing of the group is stored.
      if (!outcome || !this.writer.connection.isTransaction) {
        this.#rollback()
        return undefined
      }
      outcomes.push(outcome)
    }
    try {
      await grouped.runHandlers()
      this.#commit()
      return outcomes
    } catch {
      // The session has reported the error.
      this.#rollback()
      return undefined
    }
  }

  /** Undefined if the member failed after it had written: then its writes cannot be separated from those of other members. */
  async #runInGroup(
    member: QueuedTransaction,
    grouped: SqliteGroupTransaction,
  ): Promise<TransactionOutcome | undefined> {
    try {
      const tx = await grouped.beginMember(member.groupable)
      const before = this.#yieldingTransaction.writeCount
      const outcome = await runQueuedTransaction(member, tx)
      if (!('error' in outcome)) return outcome
      return isEngineError(outcome.error) || this.#yieldingTransaction.writeCount !== before
        ? undefined
        : outcome
    } catch {
      return undefined // The session has reported the error.
    }
  }

  async #runInSavepoint(member: QueuedTransaction): Promise<TransactionOutcome | undefined> {
    try {
      this.writer.exec('savepoint member')
      const outcome = await runQueuedTransaction(member, this.#yieldingTransaction)
      if ('error' in outcome) {
        if (isEngineError(outcome.error)) return undefined
        this.writer.exec('rollback to member')
      }
      this.writer.exec('release member')
      return outcome
    } catch {
      return undefined // The session has reported the error.
    }
  }

  async #runAlone(member: QueuedTransaction): Promise<TransactionOutcome> {
    try {
      await this.#begin(member.deadline)
      const outcome = await runQueuedTransaction(member, this.#yieldingTransaction)
      if ('error' in outcome) this.#rollback()
      else this.#commit()
      return outcome
    } catch (error) {
      this.#rollback()
      return { member, error: translateSqliteError(error) }
    }
  }

  async #begin(deadline: number): Promise<void> {
    this.sessions.requireHealthy()
    await retryWhileBusy(deadline, () => {
      this.writer.exec('begin immediate')
    })
    this.#yieldingTransaction.begin()
  }

  #commit(): void {
    this.writer.exec('commit')
    const { writeHealth } = this.sessions
    if (writeHealth.unwritable && this.#yieldingTransaction.hasWritten) writeHealth.clearReadOnly()
  }

  /** Never throws, because the caller must still settle its members. */
  #rollback(): void {
    try {
      if (this.writer.connection.isTransaction) this.writer.connection.exec('rollback')
    } catch (error) {
      this.sessions.writeHealth.report('failed', error)
    }
  }
}

async function runQueuedTransaction(member: QueuedTransaction, tx: Transaction): Promise<TransactionOutcome> {
  try {
    return { member, value: await member.work(tx) }
  } catch (error) {
    return { member, error: translateSqliteError(error) }
  }
}

function settleTransaction(outcome: TransactionOutcome): void {
  if ('error' in outcome) outcome.member.reject(outcome.error)
  else outcome.member.resolve(outcome.value)
}

function readDataVersion(session: SqliteSession): number | undefined {
  try {
    const [row] = session.connection.prepare('pragma data_version').all() as { data_version: number }[]
    return row?.data_version
  } catch {
    return undefined
  }
}
