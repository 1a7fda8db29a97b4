// Adds the index of the failing request to the errors of a batch.
import { VersoError } from '../../errors.js'
import { parseRequestIndex } from '../../model/write/batch.js'

/** Runs the requests in sequence and adds the index of the failing one to its error. */
export async function mapRequests<T, R>(
  all: readonly T[],
  run: (item: T, index: number) => R | Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  for (const [index, one] of all.entries())
    results.push(await withRequestIndex(index, async () => run(one, index)))
  return results
}

/** Without an index, the path of the error names the request. */
export async function withRequestIndex<T>(index: number | undefined, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw addRequestIndex(error, index)
  }
}

export function addRequestIndex(error: unknown, index: number | undefined): unknown {
  if (!(error instanceof VersoError)) return error
  const { data, ...details } = error.details
  const path = details.path ?? Object.keys(details.errors ?? {})[0]
  const found = index ?? parseRequestIndex(path)
  if (found === undefined || data?.['index'] !== undefined) return error
  return new VersoError(error.kind, error.message, { ...details, data: { ...data, index: found } })
}
