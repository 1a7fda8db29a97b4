import { VersoError } from '../../errors.js'
import { ROLE_MODEL } from '../../model/catalog/auth-models.js'
import { USER_MODEL } from '../../model/definition/model.js'
import { hasAdministrator } from '../../store/auth/accounts.js'
import type { Transaction } from '../../store/engine/database.js'
import type { NewChange } from '../../store/log/log.js'
import type { Caller } from '../context/principal.js'

/** What of an account and of a role decides whether somebody can log in who may do everything. */
const DECIDING: Readonly<Record<string, readonly string[]>> = {
  [USER_MODEL]: ['disabled', 'roles'],
  [ROLE_MODEL]: ['admin'],
}

/**
 * Once everything is written: nobody locks the last administrator out, themselves included. Only the command line may, which needs no
 * account. The epoch of rights is raised before, which no two transactions do at once: so two administrators cannot remove each other.
 */
export async function keepAnAdministrator(
  tx: Transaction,
  { actor }: Caller,
  changes: readonly NewChange[],
): Promise<void> {
  if (!actor || !changes.some(mayTakeAway) || (await hasAdministrator(tx))) return
  throw new VersoError(
    'forbidden',
    'Nobody would be left who can log in and may do everything: make another administrator first. Nothing was written',
  )
}

function mayTakeAway({ model, action, changes }: NewChange): boolean {
  const fields = DECIDING[model]
  if (!fields || action === 'create') return false
  return action === 'delete' || fields.some((name) => Object.hasOwn(changes, name))
}
