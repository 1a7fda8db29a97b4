// Group commit: concurrent groupable writes share one transaction and one COMMIT. Grouping adds no delay, and no write is acknowledged before
// the COMMIT. A member that cannot share the transaction runs again alone.
import type { BeforeCommitHandler, Transaction } from './database.js'
import { Batcher } from './batcher.js'
import type { Semaphore } from './semaphore.js'

/** The outcome of one member of a group. With `run-alone` it has written nothing, and runs again in a transaction of its own. */
export type GroupOutcome = { readonly value: unknown } | 'run-alone'

export type GroupWorkList = readonly ((tx: Transaction) => Promise<unknown>)[]
type GroupWork = GroupWorkList[number]

interface GroupMember {
  readonly work: GroupWork
  /** The record that it writes; undefined for a new record. */
  readonly record: string | undefined
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Runs members in transactions of an engine. */
export interface GroupRunner {
  /** Runs one member in its own transaction. */
  runAlone(work: GroupWork): Promise<unknown>
  /** Runs all members in one transaction. Resolves with undefined if nothing was stored. Rejects if the result of the COMMIT is unknown. */
  runGroup(works: GroupWorkList): Promise<readonly GroupOutcome[] | undefined>
}

/** The writes of a group can be large, and stay in memory until all members are done. */
const MAX_GROUP_MEMBERS = 64

export class GroupCommit {
  readonly #queue: GroupMember[] = []
  /** Records of waiting and running members. Two members of a group must not write the same record. */
  readonly #claimedRecords = new Set<string>()
  #isScheduled = false
  #running = 0

  constructor(
    private readonly semaphore: Semaphore,
    /** The largest number of groups that run at the same time. */
    private readonly maxConcurrent: number,
    private readonly runner: GroupRunner,
  ) {}

  /** The number of waiting members plus the number of claimed records. */
  get pending(): number {
    return this.#queue.length + this.#claimedRecords.size
  }

  async add<T>(work: (tx: Transaction) => Promise<T>, record: string | undefined): Promise<T> {
    if (record !== undefined && this.#claimedRecords.has(record))
      return this.semaphore.run(() => this.runner.runAlone(work)) as Promise<T>
    if (record !== undefined) this.#claimedRecords.add(record)
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, record, resolve: resolve as GroupMember['resolve'], reject })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#isScheduled || this.#running >= this.maxConcurrent) return
    this.#isScheduled = true
    // Requests that have arrived already are read first, so their writes join this group.
    setImmediate(() => {
      this.#isScheduled = false
      void this.#flush()
    })
  }

  async #flush(): Promise<void> {
    this.#running += 1
    let exclusive: readonly GroupMember[] = []
    await this.semaphore
      .run(async () => {
        // Members that were added while the group waited for the semaphore join it.
        const members = this.#queue.splice(0, MAX_GROUP_MEMBERS)
        exclusive = await this.#runGroup(members)
        this.#releaseRecords(members)
      })
      .catch((error: unknown) => {
        const members = this.#queue.splice(0)
        this.#releaseRecords(members)
        for (const { reject } of members) reject(error)
      })
    this.#running -= 1
    if (this.#queue.length > 0) this.#schedule()
    for (const member of exclusive) this.#runAlone(member)
  }

  /** Returns the members that must run alone. */
  async #runGroup(members: readonly GroupMember[]): Promise<readonly GroupMember[]> {
    const [only, ...others] = members
    if (!only) return []
    if (others.length === 0) {
      await this.runner.runAlone(only.work).then(only.resolve, only.reject)
      return []
    }
    try {
      const outcomes = await this.runner.runGroup(members.map(({ work }) => work))
      if (!outcomes) return members
      return members.filter(({ resolve }, index) => {
        const outcome = outcomes[index]
        if (outcome === undefined || outcome === 'run-alone') return true
        resolve(outcome.value)
        return false
      })
    } catch (error) {
      for (const { reject } of members) reject(error)
      return []
    }
  }

  #runAlone({ work, resolve, reject }: GroupMember): void {
    this.semaphore.run(() => this.runner.runAlone(work)).then(resolve, reject)
  }

  #releaseRecords(members: readonly GroupMember[]): void {
    for (const { record } of members) if (record !== undefined) this.#claimedRecords.delete(record)
  }
}

/** Thrown to end a member that cannot share the transaction. */
class ExclusiveRequiredError extends Error {}

/** Runs the members concurrently in the transaction and batches their statements. Rejects if a member wrote something and failed. */
export async function runGroupTransaction(
  tx: Transaction,
  works: GroupWorkList,
  /** Called before the `beforeCommit` handlers run. */
  onMembersDone: () => void,
): Promise<readonly GroupOutcome[]> {
  const group = new GroupTransaction(tx)
  const outcomes = await Promise.all(works.map((work) => group.run(work)))
  await group.finish(onMembersDone)
  return outcomes
}

/** The memoized values and `beforeCommit` handlers that the members of a group share. */
export class GroupState {
  readonly #memo = new Map<string, Promise<unknown>>()
  readonly #handlers = new Map<
    string,
    { readonly run: BeforeCommitHandler<unknown>; readonly inputs: unknown[] }
  >()

  async memoize<T>(key: string, load: () => Promise<T>): Promise<T> {
    const value = this.#memo.get(key) ?? load()
    this.#memo.set(key, value)
    return value as Promise<T>
  }

  beforeCommit<I>(key: string, input: I, run: BeforeCommitHandler<I>): void {
    const handler = this.#handlers.get(key) ?? { run: run as BeforeCommitHandler<unknown>, inputs: [] }
    this.#handlers.set(key, handler)
    handler.inputs.push(input)
  }

  /** Runs and removes the handlers, and clears the memoized values. */
  async runHandlers(tx: Transaction): Promise<void> {
    const handlers = [...this.#handlers.values()]
    this.#handlers.clear()
    this.#memo.clear()
    for (const { run, inputs } of handlers) await run(tx, inputs)
  }
}

class GroupTransaction {
  // `nextTick` runs after microtasks: all members that continued after one statement have added their next input by then.
  readonly #batcher = new Batcher({
    maxInputs: MAX_GROUP_MEMBERS,
    schedule: (flush) => process.nextTick(flush),
    rejectsAll: true,
  })
  readonly #state = new GroupState()
  /** The error of a statement, after which the transaction is aborted; or of a member that had written already. */
  #failure: { readonly error: unknown } | undefined

  constructor(private readonly tx: Transaction) {}

  async run(work: GroupWork): Promise<GroupOutcome> {
    const member = { hasWritten: false }
    try {
      return { value: await work(this.#createMemberTransaction(member)) }
    } catch (error) {
      // A member that wrote nothing runs again alone, where it sees only committed data and the complete Log. There it fails for good.
      if (member.hasWritten) this.#failure ??= { error }
      return 'run-alone'
    }
  }

  async finish(onMembersDone: () => void): Promise<void> {
    if (this.#failure) throw this.#failure.error
    onMembersDone()
    await this.#state.runHandlers(this.tx)
  }

  #createMemberTransaction(member: { hasWritten: boolean }): Transaction {
    const { tx } = this
    const writing = async (changed: Promise<number>) => {
      const count = await this.#recordFailure(changed)
      if (count > 0) member.hasWritten = true
      return count
    }
    const requireExclusive = () => {
      throw new ExclusiveRequiredError('requires its own transaction')
    }
    const memberTransaction: Transaction = {
      all: (sql, params) => this.#recordFailure(tx.all(sql, params)),
      run: (sql, params) => writing(tx.run(sql, params)),
      insert: (sql, params) => writing(tx.insert(sql, params)),
      batch: (work, input) => this.#batcher.run(work, memberTransaction, input),
      batchWrite: async (work, input) => {
        const output = await this.#batcher.batch(work.key, input, (inputs) =>
          work.runMany(memberTransaction, inputs),
        )
        if (output === undefined) return requireExclusive()
        member.hasWritten = true
        return output
      },
      readInSnapshot: (_, otherwise) => otherwise(),
      sendWithCommit: async (sql, params) => {
        await writing(tx.run(sql, params))
      },
      memoize: (key, load) => this.#state.memoize(key, () => this.#recordFailure(load())),
      beforeCommit: (key, input, run) => {
        this.#state.beforeCommit(key, input, run)
        return Promise.resolve()
      },
      requireExclusive,
    }
    return memberTransaction
  }

  async #recordFailure<T>(statement: Promise<T>): Promise<T> {
    try {
      return await statement
    } catch (error) {
      this.#failure ??= { error }
      throw error
    }
  }
}
