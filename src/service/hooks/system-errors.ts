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

/** Wraps calls with all permissions, and marks their errors. */
export function markErrorsOfCalls<Calls extends object>(calls: Calls): Calls {
  const marked = Object.entries(calls).map(
    ([name, call]: [string, (...args: unknown[]) => Promise<unknown>]) => [
      name,
      async (...args: unknown[]) => markSystemErrors(() => call(...args)),
    ],
  )
  return Object.fromEntries(marked) as Calls
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
  const message = `A rule about records that you may not see refused this (${error.kind})${outcome}`
  return new VersoError(error.kind, message, {
    cause: error,
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  })
}

/** Undefined if the user may see none of the messages. */
function pickVisible(error: RuleError, permissions: Permissions): VersoError | undefined {
  const { messages, details } = error
  const shown = messages.filter(({ model, field }) => permissions.isVisible(model, field))
  if (shown.length === 0) return undefined
  const errors = new FieldErrors()
  for (const rule of shown) errors.addOfRule(rule)
  const paths = new Set(shown.map(({ path }) => path))
  if (Object.keys(details.errors ?? {}).some((path) => !paths.has(path))) errors.addHidden()
  const visible = errors.toError()
  return new VersoError(visible.kind, visible.message, { ...visible.details, cause: error })
}
