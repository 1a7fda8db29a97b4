// One client's hands: each operation goes to some node, is perhaps cut off or repeated, and is written down.
import {
  Lost,
  NotSent,
  type Adapter,
  type Other,
  type RecordAnswer,
  type Send,
  type State,
} from './adapter.js'
import type { RemovalAnswer, TotalAnswer } from './adapter.js'
import type { Connection, Place } from './connection.js'
import type { Journal, Operation } from './journal.js'
import type { Random } from './random.js'

const NOBODY_THERE_MS = 50
const LATEST_CUT_MS = 4
/** A create without an answer is repeated for so long. */
const PATIENCE_MS = 60_000

/** What all clients share. */
export interface Ground {
  readonly adapter: Adapter
  readonly connection: Connection
  readonly places: readonly Place[]
  readonly journal: Journal
  /** Waits so long, or until there is no time left. */
  readonly pause: (milliseconds: number) => Promise<void>
}

/** How often requests are cut off, carry a key, and are repeated: shares from 0 to 1. */
export interface Trouble {
  readonly drop: number
  /** Of updates and deletes; creates always carry one. */
  readonly keyed: number
  /** A write that is sent twice carries a key. */
  readonly duplicates: number
}

type About = Pick<Operation, 'kind' | 'record' | 'key' | 'token' | 'named'>
/** Only that of a record has an id. */
type Answer = { readonly outcome: 'ok'; readonly id?: string } | Other

export class Caller {
  #keys = 0
  dropped = 0
  repeated = 0

  constructor(
    private readonly ground: Ground,
    readonly name: string,
    private readonly random: Random,
    private readonly trouble: Trouble,
    private readonly run: string,
  ) {}

  /** With a key, an answer that was lost is asked for again until it is known. */
  async create(): Promise<RecordAnswer> {
    const { adapter } = this.ground
    const about: About = { kind: 'create', ...this.#newKey() }
    const ask = async (send: Send) => adapter.create(send, [], about.key)
    let answer = await this.#once(about, ask)
    if (answer.outcome === 'ok' && about.key !== undefined && this.random.happens(this.trouble.duplicates))
      await this.#again(about, ask)
    const isOpen = () => answer.outcome === 'unknown' || answer.outcome === 'refused'
    const untilMs = performance.now() + PATIENCE_MS
    while (about.key !== undefined && isOpen() && performance.now() < untilMs)
      answer = await this.#once(about, ask)
    return answer
  }

  async read(record: string): Promise<RecordAnswer> {
    return this.#once({ kind: 'read', record }, (send) => this.ground.adapter.read(send, record))
  }

  /** Appends a token of its own to what was read. */
  async update(record: string, { version, tokens }: State): Promise<RecordAnswer> {
    const { adapter, journal } = this.ground
    const token = journal.nextToken(this.name)
    const { isTwice, ...key } = this.#chooseKey()
    const about: About = { kind: 'update', record, token, named: version, ...key }
    return this.#write(about, isTwice, (send) =>
      adapter.update(send, record, version, [...tokens, token], about.key),
    )
  }

  async remove(record: string, version: number): Promise<RemovalAnswer> {
    const { isTwice, ...key } = this.#chooseKey()
    const about: About = { kind: 'remove', record, named: version, ...key }
    return this.#write(about, isTwice, async (send): Promise<RemovalAnswer> => {
      const answer = await this.ground.adapter.remove(send, record, version, about.key)
      // Some services show once more what they have removed: that is no state of the record.
      return answer.outcome === 'ok' ? { outcome: 'ok' } : answer
    })
  }

  async total(): Promise<TotalAnswer | undefined> {
    const { adapter } = this.ground
    if (!adapter.total) return undefined
    return this.#once({ kind: 'total' }, async (send) => adapter.total?.(send) ?? { outcome: 'refused' })
  }

  #newKey(): { readonly key?: string } {
    return this.ground.adapter.takesKeys ? { key: `${this.run}.${this.name}.${++this.#keys}` } : {}
  }

  /** Whether a write carries a key, and whether it is sent twice with it. */
  #chooseKey(): { readonly key?: string; readonly isTwice: boolean } {
    const isTwice = this.random.happens(this.trouble.duplicates)
    const isKeyed = this.random.happens(this.trouble.keyed) || isTwice
    const key = isKeyed ? this.#newKey() : {}
    return { ...key, isTwice: isTwice && 'key' in key }
  }

  /** Sends it once; or twice, at the same time or one after the other. */
  async #write<A extends Answer>(
    about: About,
    isTwice: boolean,
    ask: (send: Send) => Promise<A>,
  ): Promise<A | Other> {
    if (!isTwice) return this.#once(about, ask)
    const isAtOnce = this.random.happens(0.5)
    const first = this.#once(about, ask)
    if (!isAtOnce) await first
    const second = this.#again(about, ask)
    const answers = [await first, await second] as const
    return answers.find(({ outcome }) => outcome === 'ok') ?? answers[1]
  }

  async #again<A extends Answer>(about: About, ask: (send: Send) => Promise<A>): Promise<A | Other> {
    this.repeated++
    return this.#once(about, ask)
  }

  async #once<A extends Answer>(about: About, ask: (send: Send) => Promise<A>): Promise<A | Other> {
    const { journal, pause } = this.ground
    const invokedMs = performance.now()
    const answer = await this.#ask(ask)
    const times = { invokedMs, answeredMs: performance.now() }
    const record = about.record ?? (answer.outcome === 'ok' ? answer.id : undefined)
    journal.add({ ...about, record, client: this.name, ...times, ...answer })
    const waitMs = waitOf(answer)
    if (waitMs > 0) await pause(waitMs)
    return answer
  }

  async #ask<A extends Answer>(ask: (send: Send) => Promise<A>): Promise<A | Other> {
    const { connection, places } = this.ground
    const place = places[this.random.below(places.length)]
    if (!place) throw new Error('there is no node')
    const isCut = this.random.happens(this.trouble.drop)
    try {
      return await ask(connection.to(place, isCut ? this.random.next() * LATEST_CUT_MS : undefined))
    } catch (error) {
      if (error instanceof NotSent) return { outcome: 'refused', retryAfterMs: NOBODY_THERE_MS }
      if (!(error instanceof Lost)) throw error
      if (isCut) this.dropped++
      return { outcome: 'unknown' }
    }
  }
}

/** What the service asks for before the next try. */
function waitOf(answer: Answer): number {
  return 'retryAfterMs' in answer ? (answer.retryAfterMs ?? 0) : 0
}
