// Those who came a moment ago, so that a client that asks again and again is not looked up every time.
import type { Principal } from './principal.js'

/** What other nodes change holds here for reads after this time: less than a second, which is what is promised. Writes ask the store. */
const SESSION_CACHE_TTL_MS = 900
const MAX_CACHED_SESSIONS = 10_000

export interface CachedSession {
  readonly principal: Principal
  /** Whether it would still do at this moment, which is one of the clock of the service. */
  readonly isAlive: (now: number) => boolean
  /** Notes that it is in use, where that is to be noted. */
  readonly markUsed: (now: number) => void
}

interface SessionCacheEntry {
  readonly session: CachedSession
  readonly untilMs: number
}

/** By what they came with: the id of a session, a key. Whatever this node changes of accounts, sessions and rights holds at once. */
export class SessionCache {
  readonly #entries = new Map<string, SessionCacheEntry>()
  #generation = 0
  /** The most ends of sessions, keys and accounts that this node has heard of. */
  #revocations = 0

  /** Time that nobody can put back: the clock of the service may be. */
  constructor(private readonly time: () => number) {}

  get(secret: string): CachedSession | undefined {
    const entry = this.#entries.get(secret)
    if (entry && this.time() < entry.untilMs) return entry.session
    if (entry) this.#entries.delete(secret)
    return undefined
  }

  /** What `look` finds is kept, unless something has changed in the meantime: it may have been looked up before that. */
  async find(
    secret: string,
    load: () => Promise<CachedSession | undefined>,
  ): Promise<CachedSession | undefined> {
    const cached = this.get(secret)
    if (cached) return cached
    const [generation, untilMs] = [this.#generation, this.time() + SESSION_CACHE_TTL_MS]
    const found = await load()
    const isOlder = (found?.principal.access?.revocations ?? this.#revocations) < this.#revocations
    if (found && !isOlder && generation === this.#generation)
      this.#insert(secret, { session: found, untilMs })
    return found
  }

  /** After the COMMIT of whatever may have changed who somebody is, or what they may do. */
  clear(): void {
    this.#generation++
    this.#entries.clear()
  }

  /** Forgets everybody who was looked up under a smaller number of ends: once, however many writes come with the news. */
  clearBefore(revocations: number): void {
    if (revocations <= this.#revocations) return
    this.#revocations = revocations
    this.clear()
  }

  #insert(secret: string, entry: SessionCacheEntry): void {
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined && this.#entries.size >= MAX_CACHED_SESSIONS) this.#entries.delete(oldest)
    this.#entries.set(secret, entry)
  }
}
