// Turns the query of typed records into the parameters of a find.
import { formatFilter, type FilterInput } from '../../client/filter.js'
import { VersoError } from '../../errors.js'
import type { RecordQuery } from '../../model/definition/typed-records.js'
import type { UntypedDefinition } from '../../model/definition/untyped-definition.js'
import type { FindQuery } from '../../model/query/search.js'

/** Unknown parameters stay: the search rejects them. */
export function toFindQuery(
  query: Readonly<Record<string, unknown>> | RecordQuery<UntypedDefinition> = {},
): FindQuery {
  const entries = Object.entries(query).flatMap(([name, value]): [string, unknown][] =>
    value === undefined ? [] : [[name, name === 'filter' ? writeFilter(value) : writeParameter(value)]],
  )
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

/** Only queries of texts share their plans with equal ones. */
function writeParameter(value: unknown): unknown {
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(',')
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
}

/** The values of a filter may come from a client of a route, so a wrong one is an expected error. */
function writeFilter(filter: unknown): string | undefined {
  try {
    return formatFilter(filter as FilterInput)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new VersoError('bad-request', error.message, { cause: error })
  }
}
