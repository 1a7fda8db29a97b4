// Those who came a moment ago, so that a client that asks again and again is not looked up every time.
import type { Caller } from './principal.js'

/** What other nodes change holds here for reads after this time: less than a second, which is what is promised. Writes ask the store. */
const KNOWN_MS = 900
const MAX_KNOWN = 10_000

export interface Known {
  readonly caller: Caller
  /** Whether it would still do at this moment, which is one of the clock of the service. */
  readonly isAlive: (now: number) => boolean
  /** Notes that it is in use, where that is to be noted. */
  readonly use: (now: number) => void
}

interface Kept {
  readonly known: Known
  readonly untilMs: number
}

/** By what they came with: the id of a session, a key. Whatever this node changes of accounts, sessions and rights holds at once. */
export class KnownCallers {
  readonly #kept = new Map<string, Kept>()
  #changes = 0
  /** The most ends of sessions, keys and accounts that this node has heard of. */
  #ends = 0

  /** Time that nobody can put back: the clock of the service may be. */
  constructor(private readonly time: () => number) {}

  get(secret: string): Known | undefined {
    const kept = this.#kept.get(secret)
    if (kept && this.time() < kept.untilMs) return kept.known
    if (kept) this.#kept.delete(secret)
    return undefined
  }

  /** What `look` finds is kept, unless something has changed in the meantime: it may have been looked up before that. */
  async find(secret: string, look: () => Promise<Known | undefined>): Promise<Known | undefined> {
    const known = this.get(secret)
    if (known) return known
    const [changes, untilMs] = [this.#changes, this.time() + KNOWN_MS]
    const found = await look()
    const isOlder = (found?.caller.access?.ends ?? this.#ends) < this.#ends
    if (found && !isOlder && changes === this.#changes) this.#keep(secret, { known: found, untilMs })
    return found
  }

  /** After the COMMIT of whatever may have changed who somebody is, or what they may do. */
  forget(): void {
    this.#changes++
    this.#kept.clear()
  }

  /** Forgets everybody who was looked up under a smaller number of ends: once, however many writes come with the news. */
  forgetBefore(ends: number): void {
    if (ends <= this.#ends) return
    this.#ends = ends
    this.forget()
  }

  #keep(secret: string, kept: Kept): void {
    const [oldest] = this.#kept.keys()
    if (oldest !== undefined && this.#kept.size >= MAX_KNOWN) this.#kept.delete(oldest)
    this.#kept.set(secret, kept)
  }
}
