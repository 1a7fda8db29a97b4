import { hash, randomBytes } from 'node:crypto'
import { briefly, Refusal } from '../errors.js'
import { normalizeUsername } from '../model/auth.js'
import { findLogin, lockLogin, markLogin } from '../store/accounts.js'
import { closeSession, findSession, openSession, touchSession } from '../store/sessions.js'
import { actorOf, type Actor } from './actor.js'
import type { App } from './app.js'
import type { Caller } from './caller.js'
import { verifyPassword } from './passwords.js'
import { noteFailure, refuseIfThrottled, throttleKeys } from './throttle.js'

const SESSION_ID = /^[A-Za-z0-9_-]{43}$/
/** How often a session in use is marked as seen, at most: a write for every request would cost too much. */
const MAX_TOUCH_MS = 60_000

export interface Credentials {
  readonly username?: unknown
  readonly password?: unknown
}

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
): Promise<LoggedIn> {
  const { username, password } = credentials
  const name = typeof username === 'string' ? normalizeUsername(username) : undefined
  const keys = throttleKeys(name ?? '', address)
  await refuseIfThrottled(app, keys)
  const found = name === undefined ? undefined : await findLogin(app.db.reader, name)
  const stored = typeof password === 'string' ? found?.passwordHash : undefined
  // Again when its turn has come: a hundred at once are not to be looked at because none had failed yet.
  const isRight = await verifyPassword(stored, typeof password === 'string' ? password : '', () =>
    refuseIfThrottled(app, keys),
  )
  if (!found || !isRight || found.user.disabled) {
    await noteFailure(app, keys)
    throw wrongCredentials()
  }
  const sessionId = randomBytes(32).toString('base64url')
  const now = app.clock.now()
  const user = await app.db.transaction(async (tx) => {
    // The password may have been changed while it was being checked.
    const still = await lockLogin(tx, app.db.dialect, found.user.username)
    if (!still || still.passwordHash !== found.passwordHash || still.user.disabled) throw wrongCredentials()
    if (oldSessionId !== undefined) await closeSession(tx, hashOf(oldSessionId))
    await markLogin(tx, app.db.dialect, still.user.id, now)
    await openSession(tx, { hash: hashOf(sessionId), userId: still.user.id, createdMs: now, seenMs: now })
    return still.user
  })
  return { sessionId, actor: actorOf(user) }
}

/** Who a session belongs to; undefined if it is none, or over. */
export async function authenticate(app: App, sessionId: string | undefined): Promise<Caller | undefined> {
  if (sessionId === undefined || !SESSION_ID.test(sessionId)) return undefined
  const key = hashOf(sessionId)
  const found = await findSession(app.db.reader, key)
  if (!found || found.user.disabled) return undefined
  const { sessionIdleMs, sessionMaxMs } = app.settings
  const now = app.clock.now()
  const idleMs = now - found.session.seenMs
  if (idleMs > sessionIdleMs || now - found.session.createdMs > sessionMaxMs) return undefined
  if (idleMs > Math.min(MAX_TOUCH_MS, sessionIdleMs / 4)) markSeen(app, key, now)
  return app.gate.callerOf(actorOf(found.user), found.epoch)
}

export async function logout(app: App, sessionId: string | undefined): Promise<void> {
  if (sessionId === undefined || !SESSION_ID.test(sessionId)) return
  await app.db.transaction((tx) => closeSession(tx, hashOf(sessionId)))
}

/** Beside the request: a reader is not to wait for a writer, nor to fail with it. */
function markSeen(app: App, key: string, now: number): void {
  app.db
    .transaction((tx) => touchSession(tx, key, now))
    .catch((error: unknown) => {
      app.log.warn(briefly(error), 'a session could not be marked as seen')
    })
}

function hashOf(sessionId: string): string {
  return hash('sha256', sessionId, 'base64url')
}

function wrongCredentials(): Refusal {
  return new Refusal('unauthenticated', 'The user name or the password is wrong')
}
