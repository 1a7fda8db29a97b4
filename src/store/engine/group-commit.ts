// Plain writes that wait at the same time share a transaction: one COMMIT for all of them. Nobody is waited for, and nobody is told
// anything before it. Whoever cannot stay leaves and runs alone, as if there had been no others.
import type { Ending, Transaction } from './database.js'
import { Gathering } from './batcher.js'
import type { Line } from './semaphore.js'

/** What one work of a group came to; one that left has written nothing. */
export type Outcome = { readonly value: unknown } | 'left'

export type Works = readonly ((tx: Transaction) => Promise<unknown>)[]
type Work = Works[number]

interface Member {
  readonly work: Work
  /** The record that it writes; undefined for a new one. */
  readonly record: string | undefined
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** How an engine runs them. */
export interface Sharer {
  /** In a transaction of its own. */
  alone(work: Work): Promise<unknown>
  /** In one transaction. Undefined if nothing of it is stored; it fails where nobody knows. */
  together(works: Works): Promise<readonly Outcome[] | undefined>
}

/** What they write may be large, and is in memory until all of them are done. */
const MOST_MEMBERS = 64

export class Sharing {
  readonly #waiting: Member[] = []
  /** What those write who wait or are under way: no two members of a group may write the same record. */
  readonly #records = new Set<string>()
  #isDue = false
  #underWay = 0

  constructor(
    private readonly line: Line,
    /** How many groups may be under way. */
    private readonly atOnce: number,
    private readonly engine: Sharer,
  ) {}

  /** How many wait, and how many records of theirs are kept from others. */
  get pending(): number {
    return this.#waiting.length + this.#records.size
  }

  async add<T>(work: (tx: Transaction) => Promise<T>, record: string | undefined): Promise<T> {
    if (record !== undefined && this.#records.has(record))
      return this.line.inTurn(() => this.engine.alone(work)) as Promise<T>
    if (record !== undefined) this.#records.add(record)
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, record, resolve: resolve as Member['resolve'], reject })
      this.#soon()
    })
  }

  #soon(): void {
    if (this.#isDue || this.#underWay >= this.atOnce) return
    this.#isDue = true
    // What has arrived in the same turn of the event loop is heard first: that takes no time when there is nothing.
    setImmediate(() => {
      this.#isDue = false
      void this.#go()
    })
  }

  async #go(): Promise<void> {
    this.#underWay += 1
    let left: readonly Member[] = []
    await this.line
      .inTurn(async () => {
        // Whoever came while it waited for its turn comes along.
        const members = this.#waiting.splice(0, MOST_MEMBERS)
        left = await this.#run(members)
        this.#release(members)
      })
      .catch((error: unknown) => {
        const members = this.#waiting.splice(0)
        this.#release(members)
        for (const { reject } of members) reject(error)
      })
    this.#underWay -= 1
    if (this.#waiting.length > 0) this.#soon()
    for (const member of left) this.#alone(member)
  }

  /** Answers those who are to run alone. */
  async #run(members: readonly Member[]): Promise<readonly Member[]> {
    const [only, ...others] = members
    if (!only) return []
    if (others.length === 0) {
      await this.engine.alone(only.work).then(only.resolve, only.reject)
      return []
    }
    try {
      const outcomes = await this.engine.together(members.map(({ work }) => work))
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

  #alone({ work, resolve, reject }: Member): void {
    this.line.inTurn(() => this.engine.alone(work)).then(resolve, reject)
  }

  #release(members: readonly Member[]): void {
    for (const { record } of members) if (record !== undefined) this.#records.delete(record)
  }
}

/** A member's way out of its group. */
class Leaving extends Error {}

/** Runs the works beside each other in the transaction, their statements gathered. Fails if anything is left half done. */
export async function shareTransaction(
  tx: Transaction,
  works: Works,
  /** Before what comes last. */
  beforeEnd: () => void,
): Promise<readonly Outcome[]> {
  const group = new Group(tx)
  const outcomes = await Promise.all(works.map((work) => group.run(work)))
  await group.end(beforeEnd)
  return outcomes
}

class Group {
  // Microtasks come first: all who were answered by one statement have said what they want next when it is asked for.
  readonly #gathering = new Gathering({
    most: MOST_MEMBERS,
    when: (go) => process.nextTick(go),
    failsWhole: true,
  })
  readonly #atEnd = new Map<string, { readonly run: Ending<unknown>; readonly inputs: unknown[] }>()
  readonly #answers = new Map<string, Promise<unknown>>()
  /** Of a statement: after it the transaction is dead. Or of a member that had written already. */
  #failure: { readonly error: unknown } | undefined

  constructor(private readonly tx: Transaction) {}

  async run(work: Work): Promise<Outcome> {
    const member = { hasWritten: false }
    try {
      return { value: await work(this.#for(member)) }
    } catch (error) {
      // What is refused is refused again where it runs alone: there it sees what is committed, and the whole Log.
      if (member.hasWritten) this.#failure ??= { error }
      return 'left'
    }
  }

  async end(beforeEnd: () => void): Promise<void> {
    if (this.#failure) throw this.#failure.error
    beforeEnd()
    for (const { run, inputs } of this.#atEnd.values()) await run(this.tx, inputs)
  }

  #for(member: { hasWritten: boolean }): Transaction {
    const { tx } = this
    const writing = async (changed: Promise<number>) => {
      const count = await this.#watch(changed)
      if (count > 0) member.hasWritten = true
      return count
    }
    const leave = () => {
      throw new Leaving('runs alone')
    }
    return {
      all: (sql, params) => this.#watch(tx.all(sql, params)),
      run: (sql, params) => writing(tx.run(sql, params)),
      insert: (sql, params) => writing(tx.insert(sql, params)),
      together: (key, input, run) => this.#gathering.together(key, input, run),
      shared: {
        leave,
        write: async (key, input, run) => {
          const output = await this.#gathering.together(key, input, run)
          if (output === undefined) return leave()
          member.hasWritten = true
          return output
        },
      },
      once: (key, ask) => {
        const answer = this.#answers.get(key) ?? this.#watch(ask())
        this.#answers.set(key, answer)
        return answer as ReturnType<typeof ask>
      },
      atEnd: (key, input, run) => {
        const ending = this.#atEnd.get(key) ?? { run: run as Ending<unknown>, inputs: [] }
        this.#atEnd.set(key, ending)
        ending.inputs.push(input)
      },
    }
  }

  async #watch<T>(statement: Promise<T>): Promise<T> {
    try {
      return await statement
    } catch (error) {
      this.#failure ??= { error }
      throw error
    }
  }
}
