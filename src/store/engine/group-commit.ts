// Plain writes that wait at the same time share a transaction: one COMMIT for all of them. Nobody is waited for, and nobody is told
// anything before it. Whoever cannot stay leaves and runs alone, as if there had been no others.
import type { BeforeCommitHandler, Transaction } from './database.js'
import { Batcher } from './batcher.js'
import type { Semaphore } from './semaphore.js'

/** What one work of a group came to; one that left has written nothing. */
export type GroupOutcome = { readonly value: unknown } | 'left'

export type GroupWorkList = readonly ((tx: Transaction) => Promise<unknown>)[]
type GroupWork = GroupWorkList[number]

interface GroupMember {
  readonly work: GroupWork
  /** The record that it writes; undefined for a new one. */
  readonly record: string | undefined
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** How an engine runs them. */
export interface GroupRunner {
  /** In a transaction of its own. */
  runAlone(work: GroupWork): Promise<unknown>
  /** In one transaction. Undefined if nothing of it is stored; it fails where nobody knows. */
  runGroup(works: GroupWorkList): Promise<readonly GroupOutcome[] | undefined>
}

/** What they write may be large, and is in memory until all of them are done. */
const MAX_GROUP_MEMBERS = 64

export class GroupCommit {
  readonly #queue: GroupMember[] = []
  /** What those write who wait or are under way: no two members of a group may write the same record. */
  readonly #claimedRecords = new Set<string>()
  #isScheduled = false
  #running = 0

  constructor(
    private readonly semaphore: Semaphore,
    /** How many groups may be under way. */
    private readonly maxConcurrent: number,
    private readonly runner: GroupRunner,
  ) {}

  /** How many wait, and how many records of theirs are kept from others. */
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
    // What has arrived in the same turn of the event loop is heard first: that takes no time when there is nothing.
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
        // Whoever came while it waited for its turn comes along.
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

  /** Answers those who are to run alone. */
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
        if (outcome === undefined || outcome === 'left') return true
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

/** A member's way out of its group. */
class ExclusiveRequired extends Error {}

/** Runs the works beside each other in the transaction, their statements gathered. Fails if anything is left half done. */
export async function runGroupTransaction(
  tx: Transaction,
  works: GroupWorkList,
  /** Before what comes last. */
  onMembersDone: () => void,
): Promise<readonly GroupOutcome[]> {
  const group = new GroupTransaction(tx)
  const outcomes = await Promise.all(works.map((work) => group.run(work)))
  await group.finish(onMembersDone)
  return outcomes
}

class GroupTransaction {
  // Microtasks come first: all who were answered by one statement have said what they want next when it is asked for.
  readonly #batcher = new Batcher({
    maxInputs: MAX_GROUP_MEMBERS,
    schedule: (go) => process.nextTick(go),
    rejectsAll: true,
  })
  readonly #handlers = new Map<
    string,
    { readonly run: BeforeCommitHandler<unknown>; readonly inputs: unknown[] }
  >()
  readonly #memo = new Map<string, Promise<unknown>>()
  /** Of a statement: after it the transaction is dead. Or of a member that had written already. */
  #failure: { readonly error: unknown } | undefined

  constructor(private readonly tx: Transaction) {}

  async run(work: GroupWork): Promise<GroupOutcome> {
    const member = { hasWritten: false }
    try {
      return { value: await work(this.#createMemberTransaction(member)) }
    } catch (error) {
      // What is refused is refused again where it runs alone: there it sees what is committed, and the whole Log.
      if (member.hasWritten) this.#failure ??= { error }
      return 'left'
    }
  }

  async finish(onMembersDone: () => void): Promise<void> {
    if (this.#failure) throw this.#failure.error
    onMembersDone()
    for (const { run, inputs } of this.#handlers.values()) await run(this.tx, inputs)
  }

  #createMemberTransaction(member: { hasWritten: boolean }): Transaction {
    const { tx } = this
    const writing = async (changed: Promise<number>) => {
      const count = await this.#recordFailure(changed)
      if (count > 0) member.hasWritten = true
      return count
    }
    const requireExclusive = () => {
      throw new ExclusiveRequired('runs alone')
    }
    return {
      all: (sql, params) => this.#recordFailure(tx.all(sql, params)),
      run: (sql, params) => writing(tx.run(sql, params)),
      insert: (sql, params) => writing(tx.insert(sql, params)),
      batch: (key, input, run) => this.#batcher.batch(key, input, run),
      group: {
        requireExclusive,
        batchWrite: async (key, input, run) => {
          const output = await this.#batcher.batch(key, input, run)
          if (output === undefined) return requireExclusive()
          member.hasWritten = true
          return output
        },
      },
      memoize: (key, ask) => {
        const answer = this.#memo.get(key) ?? this.#recordFailure(ask())
        this.#memo.set(key, answer)
        return answer as ReturnType<typeof ask>
      },
      beforeCommit: (key, input, run) => {
        const ending = this.#handlers.get(key) ?? { run: run as BeforeCommitHandler<unknown>, inputs: [] }
        this.#handlers.set(key, ending)
        ending.inputs.push(input)
      },
    }
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
