// Refuses writes whose session, key or account was ended after the principal was looked up, on this node or another one.
import { VersoError } from '../../errors.js'
import type { Queryable } from '../../store/engine/database.js'
import { readRevocationCount } from '../../store/auth/permissions-version.js'
import type { App } from './app.js'
import type { Principal } from './principal.js'

type AccessApp = Pick<App, 'sessionCache'>

/** `revocations` is the count that the transaction has read. While it is the cached one, no access has ended. */
export async function refuseEndedAccess(
  { sessionCache }: AccessApp,
  db: Queryable,
  { access }: Principal,
  revocations: number,
): Promise<void> {
  if (!access || access.revocations === revocations) return
  sessionCache.clearBefore(revocations)
  if (await access.isOpen(db)) return
  const message = 'This session or key has ended: log in again, or use another key. Nothing was written'
  throw new VersoError('unauthenticated', message)
}

/** Reads the revocation count, for a transaction that has not read it with another statement. */
export async function requireAccess(app: AccessApp, db: Queryable, principal: Principal): Promise<void> {
  if (principal.access) await refuseEndedAccess(app, db, principal, await readRevocationCount(db))
}
