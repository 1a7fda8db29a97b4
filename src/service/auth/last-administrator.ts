import { VersoError } from '../../errors.js'
import { ROLE_MODEL } from '../../model/catalog/auth-models.js'
import { USER_MODEL } from '../../model/definition/model.js'
import { hasAdministrator } from '../../store/auth/accounts.js'
import type { Transaction } from '../../store/engine/database.js'
import type { NewChange } from '../../store/log/log.js'
import type { Principal } from '../context/principal.js'

/** What of an account and of a role decides whether somebody can log in who may do everything. */
const ADMIN_DECIDING_FIELDS: Readonly<Record<string, readonly string[]>> = {
  [USER_MODEL]: ['disabled', 'roles'],
  [ROLE_MODEL]: ['admin'],
}

/**
 * Once everything is written: nobody locks the last administrator out, themselves included. Only the command line may, which needs no
 * account. The epoch of rights is raised before, which no two transactions do at once: so two administrators cannot remove each other.
 */
export async function requireRemainingAdministrator(
  tx: Transaction,
  { user }: Principal,
  changes: readonly NewChange[],
): Promise<void> {
  if (!user || !changes.some(mayRemoveAdministrator) || (await hasAdministrator(tx))) return
  throw new VersoError(
    'forbidden',
    'Nobody would be left who can log in and may do everything: make another administrator first. Nothing was written',
  )
}

function mayRemoveAdministrator({ model, action, changes }: NewChange): boolean {
  const fields = ADMIN_DECIDING_FIELDS[model]
  if (!fields || action === 'create') return false
  return action === 'delete' || fields.some((name) => Object.hasOwn(changes, name))
}
