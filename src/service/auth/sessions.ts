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
import { actorOf, type Actor } from '../context/identity.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import type { Settings } from '../context/settings.js'
import { noteEvent } from './events.js'
import type { Known } from '../context/session-cache.js'
import { provePassword, type Credentials } from './password-proof.js'
import { hashOfToken, isToken, newToken } from './tokens.js'

/** How often a session in use is marked as seen, at most: a write for every request would cost too much. */
const MAX_TOUCH_MS = 60_000
const MAX_AGENT = 200

export interface LoggedIn {
  readonly sessionId: string
  readonly actor: Actor
}

/** A new session, and the end of the one that the request came with. */
export async function login(
  app: App,
  credentials: Credentials,
  address: string,
  oldSessionId: string | undefined,
  agent = '',
): Promise<LoggedIn> {
  const found = await provePassword(app, credentials, address)
  if (!found) throw wrongCredentials()
  const sessionId = newToken()
  const now = app.clock.now()
  const user = await app.db.transaction(async (tx) => {
    // The password may have been changed while it was being checked.
    const still = await lockCredentials(tx, app.db.dialect, found.user.username)
    if (!still || still.passwordHash !== found.passwordHash || still.user.disabled) throw wrongCredentials()
    const isEnd =
      oldSessionId !== undefined && (await deleteSession(tx, hashOfToken(oldSessionId))) !== undefined
    await saveLastLogin(tx, app.db.dialect, still.user.id, now)
    const opened = { userId: still.user.id, createdMs: now, seenMs: now, address, agent: shortened(agent) }
    await insertSession(tx, { hash: hashOfToken(sessionId), ...opened })
    const by = actorOf(still.user)
    if (isEnd) await incrementRevocationCount(tx)
    await noteEvent(app, tx, { kind: 'login', userId: by.id, address, by })
    return still.user
  })
  app.known.forget()
  return { sessionId, actor: actorOf(user) }
}

/** Who a session belongs to; undefined if it is none, or over. */
export async function authenticate(
  app: App,
  sessionId: string | undefined,
  /** What only waits does not keep a session from becoming idle. */
  { isUse = true }: { readonly isUse?: boolean } = {},
): Promise<Caller | undefined> {
  if (sessionId === undefined || !isToken(sessionId)) return undefined
  const known = await app.known.find(sessionId, () => lookUp(app, sessionId))
  return known && callerNow(app, known, isUse)
}

/** The same at once, if it was looked up a moment ago. */
export function authenticateKnown(app: App, sessionId: string): Caller | undefined {
  const known = app.known.get(sessionId)
  return known && callerNow(app, known, true)
}

function callerNow({ clock }: App, { caller, isAlive, use }: Known, isUse: boolean): Caller | undefined {
  const now = clock.now()
  if (!isAlive(now)) return undefined
  if (isUse) use(now)
  return caller
}

async function lookUp(app: App, sessionId: string): Promise<Known | undefined> {
  const key = hashOfToken(sessionId)
  const found = await findSession(app.db.reader, key)
  if (!found || found.user.disabled) return undefined
  const { createdMs } = found.session
  let { seenMs } = found.session
  const { sessionIdleMs } = app.settings
  const access = { ends: found.ends, isOpen: (db: Queryable) => isOpen(db, key) }
  return {
    caller: { ...(await app.gate.callerOf(actorOf(found.user), found.epoch)), access },
    isAlive: (now) => isAliveAt(now, app.settings, { createdMs, seenMs }),
    use: (now) => {
      if (now - seenMs <= Math.min(MAX_TOUCH_MS, sessionIdleMs / 4)) return
      seenMs = now
      markSeen(app, key, now)
    },
  }
}

async function isOpen(db: Queryable, key: string): Promise<boolean> {
  const found = await findSession(db, key)
  return found !== undefined && !found.user.disabled
}

export function isAlive({ clock, settings }: App, session: SessionRow): boolean {
  return isAliveAt(clock.now(), settings, session)
}

function isAliveAt(
  now: number,
  settings: Settings,
  { createdMs, seenMs }: Pick<SessionRow, 'createdMs' | 'seenMs'>,
): boolean {
  return now - seenMs <= settings.sessionIdleMs && now - createdMs <= settings.sessionMaxMs
}

export async function logout(app: App, sessionId: string | undefined, address?: string): Promise<void> {
  if (sessionId === undefined || !isToken(sessionId)) return
  await app.db.transaction(async (tx) => {
    const userId = await deleteSession(tx, hashOfToken(sessionId))
    if (userId === undefined) return
    await incrementRevocationCount(tx)
    await noteEvent(app, tx, { kind: 'logout', userId, address })
  })
  app.known.forget()
}

/** Beside the request: a reader is not to wait for a writer, nor to fail with it. */
function markSeen(app: App, key: string, now: number): void {
  app.db
    .transaction((tx) => updateSessionSeen(tx, key, now))
    .catch((error: unknown) => {
      app.log.warn(summarizeError(error), 'a session could not be marked as seen')
    })
}

function shortened(agent: string): string | null {
  // Whole characters only; what is no text is not kept.
  const text = Array.from(agent.replace(/\p{C}/gu, ' ')).slice(0, MAX_AGENT).join('').trim()
  return text === '' ? null : text
}

function wrongCredentials(): VersoError {
  return new VersoError('unauthenticated', 'The user name or the password is wrong')
}
