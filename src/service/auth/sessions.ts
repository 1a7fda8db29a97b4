// Opens, authenticates, lists and ends sessions.
import { summarizeError, VersoError } from '../../errors.js'
import { lockCredentials, saveLastLogin } from '../../store/auth/accounts.js'
import { NECESSARY_TRANSACTION, type Queryable } from '../../store/engine/database.js'
import { incrementRevocationCount } from '../../store/auth/permissions-version.js'
import {
  deleteSession,
  findSession,
  insertSession,
  updateSessionSeen,
  type SessionRow,
  deleteUserSessions,
  listSessionRows,
} from '../../store/auth/sessions.js'
import { toUserIdentity, type UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { appendEvent } from './events.js'
import {
  hasExpired,
  requireAccess,
  usePrincipal,
  type CachedSession,
  type Validity,
} from '../context/session-cache.js'
import { verifyCredentials, type Credentials } from './throttle.js'
import { hashToken, isTokenFormat, createToken } from './tokens.js'
import { hash } from 'node:crypto'
import type { Context } from '../context/context.js'

/** The last use of a session is updated after this time, or a quarter of a shorter idle time-out: an update for every request would cost too much. */
const MAX_TOUCH_INTERVAL_MS = 60_000
const MAX_AGENT_LENGTH = 200
const PUBLIC_ID_LENGTH = 16

export interface LoginResult {
  readonly sessionId: string
  readonly user: UserIdentity
}

/** The request that carries the credentials. */
export interface LoginRequest {
  /** IP address of the client. Failed logins are counted by it. */
  readonly address: string
  /** The session that the request was sent with; the login ends it. */
  readonly oldSessionId?: string | undefined
  /** The `User-Agent` header, shown in the list of open sessions. */
  readonly agent?: string | undefined
}

/** Opens a session and ends the one that the request was sent with. Throws `unauthenticated` if the credentials are wrong. */
export async function login(
  app: App,
  credentials: Credentials,
  { address, oldSessionId, agent = '' }: LoginRequest,
): Promise<LoginResult> {
  const found = await verifyCredentials(app, credentials, address)
  if (!found) throw createLoginError(credentials)
  const sessionId = createToken()
  const now = app.clock.now()
  const user = await app.db.transaction(async (tx) => {
    // The password may have changed while its hash was computed.
    const current = await lockCredentials(tx, app.db.dialect, found.user.username)
    if (!current || current.passwordHash !== found.passwordHash || current.user.disabled)
      throw createLoginError(credentials)
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
  }, NECESSARY_TRANSACTION)
  app.sessionCache.clear()
  return { sessionId, user: toUserIdentity(user) }
}

/** Returns the principal of a session; undefined if the session is unknown or has expired. */
export async function authenticate(
  app: App,
  sessionId: string | undefined,
  /** False for requests that only wait for changes: they do not keep the session from expiring. */
  { isUse = true }: { readonly isUse?: boolean } = {},
): Promise<Principal | undefined> {
  if (sessionId === undefined || !isTokenFormat(sessionId)) return undefined
  const session = await app.sessionCache.find(sessionId, () => loadSession(app, sessionId))
  return usePrincipal(session, app.clock.now(), isUse)
}

async function loadSession(app: App, sessionId: string): Promise<CachedSession | undefined> {
  const key = hashToken(sessionId)
  const found = await findSession(app.db.reader, key)
  if (!found || found.user.disabled) return undefined
  const validity = computeValidity(app, found.session)
  const access = { revocations: found.revocations, isOpen: (db: Queryable) => isSessionOpen(db, key) }
  return {
    ...validity,
    kind: 'session',
    principal: {
      ...(await app.authorizer.resolvePrincipal(toUserIdentity(found.user), found.permissionsVersion)),
      access,
    },
    useIntervalMs: Math.floor(Math.min(MAX_TOUCH_INTERVAL_MS, validity.maxIdleMs / 4)) + 1,
    recordUse: (now) => {
      markSessionSeen(app, key, now)
    },
  }
}

async function isSessionOpen(db: Queryable, key: string): Promise<boolean> {
  const found = await findSession(db, key)
  return found !== undefined && !found.user.disabled
}

function computeValidity({ settings }: App, { createdMs, seenMs }: SessionRow): Validity {
  return {
    lastMs: createdMs + settings.sessionMaxAgeMs,
    maxIdleMs: settings.sessionIdleTimeoutMs,
    usedMs: seenMs,
  }
}

export async function logout(app: App, sessionId: string | undefined, address?: string): Promise<void> {
  if (sessionId === undefined || !isTokenFormat(sessionId)) return
  await app.db.transaction(async (tx) => {
    const userId = await deleteSession(tx, hashToken(sessionId))
    if (userId === undefined) return
    await incrementRevocationCount(tx)
    await appendEvent(app, tx, { kind: 'logout', userId, address })
  }, NECESSARY_TRANSACTION)
  app.sessionCache.clear()
}

/** Runs beside the request: a read neither waits for this write nor fails with it. */
function markSessionSeen(app: App, key: string, now: number): void {
  app.db
    .transaction((tx) => updateSessionSeen(tx, key, now), NECESSARY_TRANSACTION)
    .catch((error: unknown) => {
      app.log.warn(summarizeError(error), 'could not update the last use of a session')
    })
}

function cleanUserAgent(agent: string): string | null {
  // Removes control characters, and cuts between whole characters.
  const text = Array.from(agent.replace(/\p{C}/gu, ' ')).slice(0, MAX_AGENT_LENGTH).join('').trim()
  return text === '' ? null : text
}

/** The message does not tell a wrong user name from a wrong password. */
function createLoginError({ username, password }: Credentials): VersoError {
  const isComplete = typeof username === 'string' && typeof password === 'string'
  return new VersoError(
    'unauthenticated',
    isComplete ? 'Wrong user name or password' : 'Send username and password as text',
  )
}

/** A session in the answer to its user. */
export interface OpenSession {
  /** Identifies the session in a request that ends it. It cannot be used to log in. */
  readonly id: string
  readonly createdOn: string
  readonly lastSeenOn: string
  readonly address: string | null
  readonly agent: string | null
  /** True for the session of the request. */
  readonly current: boolean
}

/** `current` is the hash of the session of the request. */
export async function listOpenSessions(app: App, userId: number, current?: string): Promise<OpenSession[]> {
  const now = app.clock.now()
  const rows = await listSessionRows(app.db.reader, userId)
  const open = rows.filter((session) => !hasExpired(computeValidity(app, session), now))
  return open.map(({ hash: key, createdMs, seenMs, address, agent }) => ({
    id: derivePublicId(key),
    createdOn: toIsoText(createdMs),
    lastSeenOn: toIsoText(seenMs),
    address,
    agent,
    current: key === current,
  }))
}

export async function endSession(context: Context, userId: number, id: string): Promise<void> {
  const { app, principal } = context
  await app.db.transaction(async (tx) => {
    await requireAccess(app, tx, principal)
    const session = (await listSessionRows(tx, userId)).find(({ hash: key }) => derivePublicId(key) === id)
    const isEnded = session && (await deleteSession(tx, session.hash)) !== undefined
    if (!isEnded) throw new VersoError('not-found', 'Unknown or ended session')
    await incrementRevocationCount(tx)
    await appendEvent(app, tx, { kind: 'sessions-ended', userId, note: 'one', by: principal.user })
  }, NECESSARY_TRANSACTION)
  app.sessionCache.clear()
}

/** Ends all sessions of the user, or all but one. Returns their number. */
export async function endSessions(context: Context, userId: number, except?: string): Promise<number> {
  const { app, principal } = context
  const ended = await app.db.transaction(async (tx) => {
    await requireAccess(app, tx, principal)
    const count = await deleteUserSessions(tx, userId, except)
    if (count === 0) return count
    const note = except === undefined ? 'all' : 'all but one'
    await incrementRevocationCount(tx)
    await appendEvent(app, tx, { kind: 'sessions-ended', userId, note, by: principal.user })
    return count
  }, NECESSARY_TRANSACTION)
  app.sessionCache.clear()
  return ended
}

/** Derives an id from the hash of the session. It reveals neither the hash nor the session id. */
function derivePublicId(key: string): string {
  return hash('sha256', `public ${key}`, 'base64url').slice(0, PUBLIC_ID_LENGTH)
}

function toIsoText(ms: number): string {
  return new Date(ms).toISOString()
}
