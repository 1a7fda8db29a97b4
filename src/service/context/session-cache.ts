// Caches authenticated sessions and API keys for less than a second, so that most requests need no lookup. Refuses writes whose session, key
// or account was ended after the lookup, on this node or another one.
import { VersoError } from '../../errors.js'
import { readRevocationCount } from '../../store/auth/permissions-version.js'
import type { Queryable } from '../../store/engine/database.js'
import type { Access, Principal } from './principal.js'

/** Changes by other nodes apply to reads on this node after this time; the documented limit is one second. Writes check the database. */
const SESSION_CACHE_TTL_MS = 900
const MAX_CACHED_SESSIONS = 10_000

/** The times of a session or an API key, by the service's clock, in whole milliseconds. */
export interface Validity {
  /** The last millisecond in which the session or key is valid. */
  readonly lastMs: number
  /** A session that is not used for longer expires. */
  readonly maxIdleMs: number
  /** The last use that was recorded. */
  readonly usedMs: number
}

export function hasExpired({ lastMs, maxIdleMs, usedMs }: Validity, now: number): boolean {
  return now > lastMs || now - usedMs > maxIdleMs
}

/** A session or an API key. */
export interface CachedSession extends Validity {
  readonly kind: 'session' | 'key'
  readonly principal: Principal
  usedMs: number
  /** The time after a recorded use until the next one is recorded: a write for every request would cost too much. */
  readonly useIntervalMs: number
  readonly recordUse: (now: number) => void
}

/** Returns the principal if its session or key has not expired, and records the use, if it is due. */
export function usePrincipal(
  session: CachedSession | undefined,
  now: number,
  isUse = true,
): Principal | undefined {
  if (!session || hasExpired(session, now)) return undefined
  if (isUse && now - session.usedMs >= session.useIntervalMs) {
    session.usedMs = now
    session.recordUse(now)
  }
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

  /** Returns the principal at once if the session or key is cached. A session id is no key, and a key no session id. */
  use(kind: CachedSession['kind'], secret: string | undefined, now: number): Principal | undefined {
    const session = secret === undefined ? undefined : this.get(secret)
    return session?.kind === kind ? usePrincipal(session, now) : undefined
  }

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

interface CachingApp {
  readonly sessionCache: SessionCache
}

/** `revocations` is the count that the transaction has read. While it is the cached one, no access has ended. */
export function refuseEndedAccess(
  { sessionCache }: CachingApp,
  db: Queryable,
  { access }: Principal,
  revocations: number,
): Promise<void> | undefined {
  if (!access || access.revocations === revocations) return undefined
  sessionCache.clearBefore(revocations)
  return requireOpen(access, db)
}

async function requireOpen(access: Access, db: Queryable): Promise<void> {
  if (await access.isOpen(db)) return
  const message = 'This session or API key has ended: log in again, or use another key; nothing was changed'
  throw new VersoError('unauthenticated', message)
}

/** Reads the revocation count, for a transaction that has not read it with another statement. */
export async function requireAccess(app: CachingApp, db: Queryable, principal: Principal): Promise<void> {
  if (principal.access) await refuseEndedAccess(app, db, principal, await readRevocationCount(db))
}
