// Errors of calls with all permissions. They may contain values that the user of the request must not see.
import { VersoError } from '../../errors.js'

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

/** Returns the error as a user with fewer permissions may see it: of the same kind, without values and names. `outcome` ends its message. */
export function concealSystemError(error: unknown, outcome = ''): unknown {
  if (!(error instanceof VersoError) || !systemErrors.has(error)) return error
  const { retryAfterS } = error.details
  return new VersoError(error.kind, `A rule of this service could not be applied (${error.kind})${outcome}`, {
    cause: error,
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  })
}
