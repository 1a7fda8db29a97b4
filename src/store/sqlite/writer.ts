// The writer of the SQLite engine: queues transactions and commits them in groups on one connection.
import type {
  BeforeCommitHandler,
  GroupableWrite,
  Transaction,
  TransactionOptions,
} from '../engine/database.js'
import { GroupState } from '../engine/group-commit.js'
import { UnsharedTransaction } from '../engine/unshared.js'
import { YieldingTransaction, type SqliteSession } from './connection.js'
import type { SqliteSessions } from './connections.js'
import {
  BUSY_TIMEOUT_MS,
  createBusyError,
  createClosedError,
  isEngineError,
  retryWhileBusy,
  translateSqliteError,
} from './errors.js'

const MAX_GROUP_TRANSACTIONS = 256
const MAX_QUEUED_TRANSACTIONS = 10_000
const LONG_BUSY_TIMEOUT_MS = 60_000

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

export class SqliteWriter {
  readonly #queue: QueuedTransaction[] = []
  #draining: Promise<void> | undefined
  #isClosed = false
  private readonly writer: SqliteSession
  readonly #yieldingTransaction: YieldingTransaction

  constructor(
    private readonly sessions: SqliteSessions,
    /** Called after each commit. */
    private readonly onCommitted: () => void,
  ) {
    this.writer = sessions.writer
    this.#yieldingTransaction = new YieldingTransaction(this.writer)
  }

  /** The number of waiting transactions. */
  get pending(): number {
    return this.#queue.length
  }

  async run<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions): Promise<T> {
    if (this.#isClosed) throw createClosedError()
    if (this.#queue.length >= MAX_QUEUED_TRANSACTIONS) throw createBusyError('Too many writes are waiting')
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

  /** Rejects further transactions and waits for those in the queue. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#draining
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
    this.onCommitted()
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
    const grouped = new GroupedTransaction(this.#yieldingTransaction)
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
    grouped: GroupedTransaction,
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

/** The transaction of groupable members, which run one after the other and share their `beforeCommit` handlers. */
class GroupedTransaction extends UnsharedTransaction {
  readonly #state = new GroupState()
  readonly #writtenRecords = new Set<string>()

  readonly all: Transaction['all']
  readonly run: Transaction['run']
  readonly insert: Transaction['insert']

  constructor(private readonly tx: Transaction) {
    super()
    this.all = (sql, params) => tx.all(sql, params)
    this.run = (sql, params) => tx.run(sql, params)
    this.insert = (sql, params) => tx.insert(sql, params)
  }

  override memoize<T>(key: string, load: () => Promise<T>): Promise<T> {
    return this.#state.memoize(key, load)
  }

  override async beforeCommit<I>(key: string, input: I, run: BeforeCommitHandler<I>): Promise<void> {
    this.#state.beforeCommit(key, input, run)
    return Promise.resolve()
  }

  /** The transaction of the next member. A member that may read records of other members runs after the handlers of those members. */
  async beginMember(groupable: GroupableWrite | undefined): Promise<Transaction> {
    const { record } = groupable ?? {}
    if (!groupable || (record !== undefined && this.#writtenRecords.has(record))) await this.runHandlers()
    if (record !== undefined) this.#writtenRecords.add(record)
    return groupable ? this : this.tx
  }

  async runHandlers(): Promise<void> {
    await this.#state.runHandlers(this.tx)
  }
}
