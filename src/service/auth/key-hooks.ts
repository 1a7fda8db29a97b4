// The hooks of API keys.
import { createFieldError } from '../../model/definition/field-errors.js'
import { isObject } from '../../model/values/value.js'
import { requireDirectCreate } from '../access/permission-checks.js'
import type { HookContext, ModelHooks, PendingSave } from '../context/app.js'

export const DAY_MS = 24 * 60 * 60_000
const MAX_KEY_DAYS = 400
export const EXPIRY_TOO_LATE = `must be at most ${MAX_KEY_DAYS} days from now`

export const KEY_HOOKS: ModelHooks = { beforeSave: refuseInvalidKeyWrite }

export function computeLatestExpiry(nowMs: number): number {
  return nowMs + MAX_KEY_DAYS * DAY_MS
}

/** Only `createKey` creates keys, a key keeps its user, and it expires. */
function refuseInvalidKeyWrite({ now }: HookContext, { draft, values, before }: PendingSave): void {
  const { model, path } = draft
  const { expiresOn = null, user = null } = values
  if (!before && !('hash' in values)) requireDirectCreate(model)
  if (before && user !== null && readUserId(before) !== readUserId(values))
    throw createFieldError(
      model,
      `${path}user`,
      'stays who it is: whoever has the key would become somebody else',
    )
  if (typeof expiresOn === 'string' && Date.parse(expiresOn) > computeLatestExpiry(Date.parse(now)))
    throw createFieldError(model, `${path}expiresOn`, EXPIRY_TOO_LATE)
}

function readUserId({ user }: Readonly<Record<string, unknown>>): unknown {
  return isObject(user) ? user['id'] : undefined
}
