// The sessions of a user, for themselves and for administrators to see and to end.
import { hash } from 'node:crypto'
import { VersoError } from '../../errors.js'
import * as store from '../../store/auth/sessions.js'
import { incrementRevocationCount } from '../../store/auth/permissions-version.js'
import type { App } from '../context/app.js'
import { requireAccess } from '../context/access.js'
import { appendEvent } from './events.js'
import { isSessionAlive } from './sessions.js'
import type { Context } from '../context/context.js'

const PUBLIC_ID_LENGTH = 16

/** A session as its user sees it. */
export interface OpenSession {
  /** Good for ending it, and for nothing else. */
  readonly id: string
  readonly createdOn: string
  readonly lastSeenOn: string
  readonly address: string | null
  readonly agent: string | null
  /** Whether it is the one that asks. */
  readonly current: boolean
}

/** `current` is what the session that asks is kept under. */
export async function listOpenSessions(app: App, userId: number, current?: string): Promise<OpenSession[]> {
  const alive = (await store.listSessionRows(app.db.reader, userId)).filter((session) =>
    isSessionAlive(app, session),
  )
  return alive.map(({ hash: key, createdMs, seenMs, address, agent }) => ({
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
    const session = (await store.listSessionRows(tx, userId)).find(
      ({ hash: key }) => derivePublicId(key) === id,
    )
    const isEnded = session && (await store.deleteSession(tx, session.hash)) !== undefined
    if (!isEnded) throw new VersoError('not-found', 'There is no such session, or it is over already')
    await incrementRevocationCount(tx)
    await appendEvent(app, tx, { kind: 'sessions-ended', userId, note: 'one', by: principal.user })
  })
  app.sessionCache.clear()
}

/** All of them, or all but one; answers how many. */
export async function endSessions(context: Context, userId: number, except?: string): Promise<number> {
  const { app, principal } = context
  const ended = await app.db.transaction(async (tx) => {
    await requireAccess(app, tx, principal)
    const count = await store.deleteUserSessions(tx, userId, except)
    if (count === 0) return count
    const note = except === undefined ? 'all' : 'all but one'
    await incrementRevocationCount(tx)
    await appendEvent(app, tx, { kind: 'sessions-ended', userId, note, by: principal.user })
    return count
  })
  app.sessionCache.clear()
  return ended
}

/** Of the hash that it is kept under: nobody gets from here to the hash, and nobody from the hash to the session. */
function derivePublicId(key: string): string {
  return hash('sha256', `public ${key}`, 'base64url').slice(0, PUBLIC_ID_LENGTH)
}

function toIsoText(ms: number): string {
  return new Date(ms).toISOString()
}
