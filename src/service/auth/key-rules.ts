// What holds for the record of a key, from wherever it is written.
import { API_KEY_MODEL } from '../../model/catalog/auth-models.js'
import type { Draft } from '../../model/write/draft.js'
import { createFieldError } from '../../model/definition/field-errors.js'
import { isObject, type Values } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import { requireDirectCreate } from '../access/permission-checks.js'

export const DAY_MS = 24 * 60 * 60_000
const MAX_KEY_DAYS = 400
export const EXPIRY_TOO_LATE = `must be at most ${MAX_KEY_DAYS} days from now`

export function computeLatestExpiry(nowMs: number): number {
  return nowMs + MAX_KEY_DAYS * DAY_MS
}

/** It is made where a key is made, stays with its user, and does not last for ever. `before` is undefined for a new one. */
export function refuseInvalidKeyWrite(
  { model, path }: Draft,
  sent: Values,
  now: string,
  before?: WireRecord,
): void {
  if (model.name !== API_KEY_MODEL) return
  const { expiresOn = null, user = null } = sent
  if (!before && !('hash' in sent)) requireDirectCreate(model)
  if (before && user !== null && readUserId(before) !== readUserId(sent))
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
