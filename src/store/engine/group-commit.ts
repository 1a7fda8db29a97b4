// Group commit: concurrent writes share one transaction and one COMMIT. Grouping adds no delay, and no write is acknowledged before the
// COMMIT. A member that cannot share the transaction runs again alone.
import type { TransactionOptions } from './database.js'
import {
  GroupTransaction,
  type GroupMember,
  type GroupMode,
  type GroupOutcome,
  type OpenTransaction,
  type TransactionWork,
} from './group-transaction.js'
import type { Semaphore } from './semaphore.js'
import { sumWaiting, type WaitingCalls } from './measures.js'

/** The differences between the engines. */
export interface GroupEngine {
  /** How a group runs: the first mode, and the next one if nothing of the group was stored. After the last one each member runs alone. */
  readonly modes: readonly [GroupMode, ...GroupMode[]]
  readonly maxMembers: number
  /** Limits the transactions that run at the same time. Only one of them is a group. */
  readonly slots: Semaphore
  /** Rejects a write that must not wait. */
  requireAdmission(queuedCount: number): void
  /** Runs one member in its own transaction. */
  runAlone(member: GroupMember): Promise<unknown>
  /**
   * Opens a transaction for the members, runs the work and commits. Resolves with undefined if nothing was stored. Rejects if the result of
   * the COMMIT is unknown.
   */
  runShared<T>(
    members: readonly GroupMember[],
    work: (open: OpenTransaction) => Promise<T>,
  ): Promise<T | undefined>
}

interface QueuedMember extends GroupMember {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

export class GroupCommit {
  /** The number of commits by their number of members. */
  readonly sizes = new Map<number, number>()
  readonly #queue: QueuedMember[] = []
  /** Records of waiting and running members. Two concurrent members must not write the same record. */
  readonly #claimedRecords = new Set<string>()
  readonly #isConcurrent: boolean
  #isScheduled = false
  #isRunning = false

  constructor(private readonly engine: GroupEngine) {
    this.#isConcurrent = engine.modes[0] === 'concurrent'
  }

  /** The writes that wait for their transaction, and when the first of them came. */
  get waiting(): WaitingCalls {
    const [first] = this.#queue
    const queued = { count: this.#queue.length, sinceMs: first?.queuedAtMs ?? Infinity }
    return sumWaiting([queued, this.engine.slots.waitingCalls])
  }

  /** The number of waiting members plus the number of claimed records. */
  get pending(): number {
    return this.#queue.length + this.#claimedRecords.size
  }

  async run<T>(work: TransactionWork<T>, options: TransactionOptions): Promise<T> {
    this.engine.requireAdmission(this.#queue.length)
    return new Promise<T>((resolve, reject) => {
      const queuedAtMs = performance.now()
      const member = { work, options, queuedAtMs, resolve: resolve as QueuedMember['resolve'], reject }
      if (this.#isConcurrent && !this.#claimRecord(options)) {
        this.#runAlone(member)
        return
      }
      this.#queue.push(member)
      this.#schedule()
    })
  }

  /** Waits for all members. */
  async drain(): Promise<void> {
    while (this.#queue.length > 0 || this.engine.slots.pending > 0) {
      await new Promise(setImmediate)
      await this.engine.slots.run(() => Promise.resolve())
    }
  }

  /** Returns false if the write cannot run beside other members. */
  #claimRecord({ groupable }: TransactionOptions): boolean {
    if (!groupable) return false
    const { record } = groupable
    if (record === undefined) return true
    if (this.#claimedRecords.has(record)) return false
    this.#claimedRecords.add(record)
    return true
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isRunning) return
    this.#isScheduled = true
    // Requests that have arrived already are read first, so their writes join this group.
    setImmediate(() => {
      this.#isScheduled = false
      void this.#flush()
    })
  }

  async #flush(): Promise<void> {
    this.#isRunning = true
    let exclusive: readonly QueuedMember[] = []
    await this.engine.slots
      .run(async () => {
        // Members that were added while the group waited for a slot join it.
        const members = this.#queue.splice(0, this.engine.maxMembers)
        exclusive = await this.#commit(members)
        this.#releaseRecords(members)
      })
      .catch((error: unknown) => {
        const members = this.#queue.splice(0)
        this.#releaseRecords(members)
        for (const { reject } of members) reject(error)
      })
    this.#isRunning = false
    if (this.#queue.length > 0) this.#schedule()
    for (const member of exclusive) this.#runAlone(member)
  }

  /** Returns the members that must run alone. */
  async #commit(members: readonly QueuedMember[]): Promise<readonly QueuedMember[]> {
    const [only] = members
    if (only && members.length === 1) {
      await this.#commitAlone(only)
      return []
    }
    try {
      for (const mode of this.engine.modes) {
        const outcomes = await this.engine.runShared(members, (open) =>
          new GroupTransaction(open, mode, this.engine.maxMembers).run(members),
        )
        if (!outcomes) continue
        const exclusive = members.filter((member, index) => !settle(member, outcomes[index]))
        this.#count(members.length - exclusive.length)
        return exclusive
      }
      return members
    } catch (error) {
      for (const { reject } of members) reject(error)
      return []
    }
  }

  #runAlone(member: QueuedMember): void {
    void this.engine.slots.run(() => this.#commitAlone(member)).catch(member.reject)
  }

  async #commitAlone(member: QueuedMember): Promise<void> {
    try {
      const value = await this.engine.runAlone(member)
      this.#count(1)
      member.resolve(value)
    } catch (error) {
      member.reject(error)
    }
  }

  #count(members: number): void {
    this.sizes.set(members, (this.sizes.get(members) ?? 0) + 1)
  }

  #releaseRecords(members: readonly QueuedMember[]): void {
    if (!this.#isConcurrent) return
    for (const { options } of members) {
      const record = options.groupable?.record
      if (record !== undefined) this.#claimedRecords.delete(record)
    }
  }
}

/** Returns false if the member must run alone. */
function settle({ resolve, reject }: QueuedMember, outcome: GroupOutcome | undefined): boolean {
  if (outcome === undefined || outcome === 'run-alone') return false
  if ('error' in outcome) reject(outcome.error)
  else resolve(outcome.value)
  return true
}
