// The hooks of users, permissions and keys, and the rules over transactions that change permissions or end access.
import { VersoError } from '../../errors.js'
import { API_KEY_MODEL, PERMISSION_MODEL, ROLE_MODEL } from '../../model/catalog/auth-models.js'
import { USER_MODEL } from '../../model/definition/model.js'
import { hasAdministrator } from '../../store/auth/accounts.js'
import {
  incrementPermissionsVersion,
  incrementRevocationCount,
} from '../../store/auth/permissions-version.js'
import type { NewChange } from '../../store/log/log.js'
import type { ModelHooks, TransactionHooks, WriteContext } from '../context/app.js'
import { KEY_HOOKS } from './keys.js'
import { PERMISSION_HOOKS } from './permission-hooks.js'
import { USER_HOOKS } from './user-hooks.js'

export const AUTH_HOOKS: readonly (readonly [string, ModelHooks])[] = [
  [USER_MODEL, USER_HOOKS],
  [PERMISSION_MODEL, PERMISSION_HOOKS],
  [API_KEY_MODEL, KEY_HOOKS],
]

/**
 * Every node computes permissions again after the permissions version has changed. The increment locks its row, so two transactions that
 * remove one administrator each run one after the other: the second one sees that it would remove the last.
 */
export const PERMISSIONS_VERSION_HOOKS: TransactionHooks = {
  models: [USER_MODEL, ROLE_MODEL, PERMISSION_MODEL, API_KEY_MODEL],
  beforeCommit: async (context, changes) => {
    await incrementPermissionsVersion(context.tx)
    await requireRemainingAdministrator(context, changes)
  },
  afterCommit: ({ app }) => {
    app.sessionCache.clear()
  },
}

/** Makes every node check again whether cached sessions and keys are still open. This must be the last lock before the Log's. */
export const REVOCATION_HOOKS: TransactionHooks = {
  models: [USER_MODEL, API_KEY_MODEL],
  beforeCommit: async ({ tx }, changes) => {
    if (changes.some(({ action }) => action !== 'create')) await incrementRevocationCount(tx)
  },
}

/** The fields that decide who is an administrator and can log in. */
const ADMIN_DECIDING_FIELDS: Readonly<Record<string, readonly string[]>> = {
  [USER_MODEL]: ['disabled', 'roles'],
  [ROLE_MODEL]: ['admin'],
}

/** Refuses to remove the last administrator. The command line may do it: it acts without a user, and needs no account. */
async function requireRemainingAdministrator(
  { tx, principal }: WriteContext,
  changes: readonly NewChange[],
): Promise<void> {
  if (!principal.user || !changes.some(mayRemoveAdministrator) || (await hasAdministrator(tx))) return
  throw new VersoError(
    'forbidden',
    'This would remove the last administrator. Create another one first; nothing was changed',
  )
}

function mayRemoveAdministrator({ model, action, changes }: NewChange): boolean {
  const fields = ADMIN_DECIDING_FIELDS[model]
  if (!fields || action === 'create') return false
  return action === 'delete' || fields.some((name) => Object.hasOwn(changes, name))
}
