// Errors of calls with all permissions. They may contain values that the user of the request must not see.
import { VersoError } from '../../errors.js'
import type { Permissions } from '../../model/access/permissions.js'
import { FieldErrors, RuleError } from '../../model/definition/field-errors.js'
import type { Principal } from '../context/principal.js'

const systemErrors = new WeakSet<VersoError>()

/** Runs a call with all permissions, and remembers its error. The code that made the call gets the error unchanged. */
export async function markSystemErrors<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof VersoError) systemErrors.add(error)
    throw error
  }
}

/**
 * Returns the error as a user with fewer permissions may see it: of the same kind, without values and names. Messages of rules about fields
 * that the user may see stay. `outcome` ends the message of the error.
 */
export function concealSystemError(
  error: unknown,
  viewer: Pick<Principal, 'permissions'> | null,
  outcome = '',
): unknown {
  if (!(error instanceof VersoError) || !systemErrors.has(error)) return error
  if (viewer && !viewer.permissions) return error
  const visible = error instanceof RuleError && viewer?.permissions && pickVisible(error, viewer.permissions)
  if (visible) return visible
  const { retryAfterS } = error.details
  return new VersoError(error.kind, `A rule of this service could not be applied (${error.kind})${outcome}`, {
    cause: error,
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  })
}

/** Undefined if the user may see none of the messages. */
function pickVisible({ messages, details }: RuleError, permissions: Permissions): VersoError | undefined {
  const shown = messages.filter(({ model, field }) => permissions.isVisible(model, field))
  if (shown.length === 0) return undefined
  const errors = new FieldErrors()
  for (const rule of shown) errors.addOfRule(rule)
  const paths = new Set(shown.map(({ path }) => path))
  if (Object.keys(details.errors ?? {}).some((path) => !paths.has(path))) errors.addHidden()
  return errors.toError()
}
