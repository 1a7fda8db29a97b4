// Caches authenticated sessions and API keys for less than a second, so that most requests need no lookup.
import type { Principal } from './principal.js'

/** Changes by other nodes apply to reads on this node after this time; the documented limit is one second. Writes check the database. */
const SESSION_CACHE_TTL_MS = 900
const MAX_CACHED_SESSIONS = 10_000

export interface CachedSession {
  readonly principal: Principal
  /** True if the session or key has not expired; `now` is a time of the service's clock. */
  readonly isAlive: (now: number) => boolean
  /** Records the use, if it is due. */
  readonly markUsed: (now: number) => void
}

/** Returns the principal if its session or key has not expired, and records the use. */
export function usePrincipal(
  session: CachedSession | undefined,
  now: number,
  isUse = true,
): Principal | undefined {
  if (!session?.isAlive(now)) return undefined
  if (isUse) session.markUsed(now)
  return session.principal
}

interface SessionCacheEntry {
  readonly session: CachedSession
  readonly untilMs: number
}

/** Principals by session id or API key. Changes of accounts, sessions and permissions by this node apply immediately. */
export class SessionCache {
  readonly #entries = new Map<string, SessionCacheEntry>()
  #generation = 0
  /** The highest number of ended sessions, keys and accounts that this node has read. */
  #revocations = 0

  /** `time` is monotonic; the clock of the service may be set back. */
  constructor(private readonly time: () => number) {}

  get(secret: string): CachedSession | undefined {
    const entry = this.#entries.get(secret)
    if (entry && this.time() < entry.untilMs) return entry.session
    if (entry) this.#entries.delete(secret)
    return undefined
  }

  /** Caches the result of `load`, unless the cache was cleared meanwhile: the result may be older than the change that cleared it. */
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

  /** Must be called after each COMMIT that changed accounts, sessions, keys or permissions. */
  clear(): void {
    this.#generation++
    this.#entries.clear()
  }

  /** Clears the cache if `revocations` is new. Many writes may report the same number; only the first clears the cache. */
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
