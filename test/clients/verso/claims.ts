// Claims of scenarios, which also run where there is no test runner.

/** A class of errors. */
export type ErrorType<E extends Error> = abstract new (...parameters: never[]) => E

export function isTrue(claim: boolean, message: string): void {
  if (!claim) throw new Error(`not true: ${message}`)
}

/** Compares values as JSON. An absent value is null. */
export function equal(actual: unknown, expected: unknown): void {
  const [left, right] = [actual, expected].map((value) => JSON.stringify(sortKeys(value ?? null)))
  if (left !== right) throw new Error(`expected ${right}, got ${left}`)
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, sortKeys(inner)]))
}

/** Returns the error that a call rejects with. Throws if it succeeds, or rejects with another error. */
export async function rejection<E extends Error>(type: ErrorType<E>, call: Promise<unknown>): Promise<E> {
  const error = await call.then(
    () => new Error('the call was expected to reject, and succeeded'),
    (reason: unknown) => reason,
  )
  if (error instanceof type && !(error as Error).message.startsWith('the call was expected')) return error
  throw error instanceof Error ? error : new Error(String(error))
}
