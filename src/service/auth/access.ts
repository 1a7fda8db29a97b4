// A write of somebody whose session, key or account has ended is refused, on whichever node it was ended.
import { VersoError } from '../../errors.js'
import { API_KEY_MODEL } from '../../model/catalog/auth-models.js'
import { USER_MODEL } from '../../model/definition/model.js'
import type { Queryable } from '../../store/engine/database.js'
import { readRevocationCount } from '../../store/auth/permissions-version.js'
import type { NewChange } from '../../store/log/log.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'

type AccessApp = Pick<App, 'sessionCache'>

/** `ends` is what the transaction reads. As long as it does not grow, everybody whom this node knows is still let in. */
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

/** The same where no other statement has brought the number along. */
export async function requireAccess(app: AccessApp, db: Queryable, principal: Principal): Promise<void> {
  if (principal.access) await refuseEndedAccess(app, db, principal, await readRevocationCount(db))
}

/** Whether a session, a key or an account may end with it: those that it keeps are looked up again, and stay. */
export function mayEndAccess({ model, action }: Pick<NewChange, 'model' | 'action'>): boolean {
  return action !== 'create' && (model === USER_MODEL || model === API_KEY_MODEL)
}
