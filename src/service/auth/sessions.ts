import { summarizeError, VersoError } from '../../errors.js'
import { lockCredentials, saveLastLogin } from '../../store/auth/accounts.js'
import type { Queryable } from '../../store/engine/database.js'
import { incrementRevocationCount } from '../../store/auth/permissions-version.js'
import {
  deleteSession,
  findSession,
  insertSession,
  updateSessionSeen,
  type SessionRow,
} from '../../store/auth/sessions.js'
import { toUserIdentity, type UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import type { Settings } from '../context/settings.js'
import { appendEvent } from './events.js'
import type { CachedSession } from '../context/session-cache.js'
import { verifyCredentials, type Credentials } from './password-proof.js'
import { hashToken, isTokenFormat, createToken } from './tokens.js'

/** How often a session in use is marked as seen, at most: a write for every request would cost too much. */
const MAX_TOUCH_INTERVAL_MS = 60_000
const MAX_AGENT_LENGTH = 200

export interface LoginResult {
  readonly sessionId: string
  readonly user: UserIdentity
}

/** A new session, and the end of the one that the request came with. */
export async function login(
  app: App,
  credentials: Credentials,
  address: string,
  oldSessionId: string | undefined,
  agent = '',
): Promise<LoginResult> {
  const found = await verifyCredentials(app, credentials, address)
  if (!found) throw createWrongCredentialsError()
  const sessionId = createToken()
  const now = app.clock.now()
  const user = await app.db.transaction(async (tx) => {
    // The password may have been changed while it was being checked.
    const current = await lockCredentials(tx, app.db.dialect, found.user.username)
    if (!current || current.passwordHash !== found.passwordHash || current.user.disabled)
      throw createWrongCredentialsError()
    const isEnd =
      oldSessionId !== undefined && (await deleteSession(tx, hashToken(oldSessionId))) !== undefined
    await saveLastLogin(tx, app.db.dialect, current.user.id, now)
    const opened = {
      userId: current.user.id,
      createdMs: now,
      seenMs: now,
      address,
      agent: cleanUserAgent(agent),
    }
    await insertSession(tx, { hash: hashToken(sessionId), ...opened })
    const identity = toUserIdentity(current.user)
    if (isEnd) await incrementRevocationCount(tx)
    await appendEvent(app, tx, { kind: 'login', userId: identity.id, address, by: identity })
    return current.user
  })
  app.sessionCache.clear()
  return { sessionId, user: toUserIdentity(user) }
}

/** Who a session belongs to; undefined if it is none, or over. */
export async function authenticate(
  app: App,
  sessionId: string | undefined,
  /** What only waits does not keep a session from becoming idle. */
  { isUse = true }: { readonly isUse?: boolean } = {},
): Promise<Principal | undefined> {
  if (sessionId === undefined || !isTokenFormat(sessionId)) return undefined
  const session = await app.sessionCache.find(sessionId, () => loadSession(app, sessionId))
  return session && resolveCachedPrincipal(app, session, isUse)
}

/** The same at once, if it was looked up a moment ago. */
export function authenticateCached(app: App, sessionId: string): Principal | undefined {
  const known = app.sessionCache.get(sessionId)
  return known && resolveCachedPrincipal(app, known, true)
}

function resolveCachedPrincipal(
  { clock }: App,
  { principal, isAlive, markUsed }: CachedSession,
  isUse: boolean,
): Principal | undefined {
  const now = clock.now()
  if (!isAlive(now)) return undefined
  if (isUse) markUsed(now)
  return principal
}

async function loadSession(app: App, sessionId: string): Promise<CachedSession | undefined> {
  const key = hashToken(sessionId)
  const found = await findSession(app.db.reader, key)
  if (!found || found.user.disabled) return undefined
  const { createdMs } = found.session
  let { seenMs } = found.session
  const { sessionIdleMs } = app.settings
  const access = { revocations: found.revocations, isOpen: (db: Queryable) => isSessionOpen(db, key) }
  return {
    principal: {
      ...(await app.authorizer.resolvePrincipal(toUserIdentity(found.user), found.permissionsVersion)),
      access,
    },
    isAlive: (now) => isSessionAliveAt(now, app.settings, { createdMs, seenMs }),
    markUsed: (now) => {
      if (now - seenMs <= Math.min(MAX_TOUCH_INTERVAL_MS, sessionIdleMs / 4)) return
      seenMs = now
      markSessionSeen(app, key, now)
    },
  }
}

async function isSessionOpen(db: Queryable, key: string): Promise<boolean> {
  const found = await findSession(db, key)
  return found !== undefined && !found.user.disabled
}

export function isSessionAlive({ clock, settings }: App, session: SessionRow): boolean {
  return isSessionAliveAt(clock.now(), settings, session)
}

function isSessionAliveAt(
  now: number,
  settings: Settings,
  { createdMs, seenMs }: Pick<SessionRow, 'createdMs' | 'seenMs'>,
): boolean {
  return now - seenMs <= settings.sessionIdleMs && now - createdMs <= settings.sessionMaxMs
}

export async function logout(app: App, sessionId: string | undefined, address?: string): Promise<void> {
  if (sessionId === undefined || !isTokenFormat(sessionId)) return
  await app.db.transaction(async (tx) => {
    const userId = await deleteSession(tx, hashToken(sessionId))
    if (userId === undefined) return
    await incrementRevocationCount(tx)
    await appendEvent(app, tx, { kind: 'logout', userId, address })
  })
  app.sessionCache.clear()
}

/** Beside the request: a reader is not to wait for a writer, nor to fail with it. */
function markSessionSeen(app: App, key: string, now: number): void {
  app.db
    .transaction((tx) => updateSessionSeen(tx, key, now))
    .catch((error: unknown) => {
      app.log.warn(summarizeError(error), 'could not update the last use of a session')
    })
}

function cleanUserAgent(agent: string): string | null {
  // Whole characters only; what is no text is not kept.
  const text = Array.from(agent.replace(/\p{C}/gu, ' ')).slice(0, MAX_AGENT_LENGTH).join('').trim()
  return text === '' ? null : text
}

function createWrongCredentialsError(): VersoError {
  return new VersoError('unauthenticated', 'The user name or the password is wrong')
}
