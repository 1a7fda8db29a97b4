// Query strings: parameters that a route does not know are refused, unless the habits of its clients say otherwise.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { listUnknownParameters, type QueryParameterSet } from '../../model/query/parameters.js'
import type { Habits } from '../compat/protocol.js'

const NONE: QueryParameterSet = { known: [] }
const IN_BODY: QueryParameterSet = {
  known: [],
  elsewhere: () => ': this request takes its options in the body, not in the query string',
}
const DELETES: QueryParameterSet = { known: ['version'] }
export const DETAILS: QueryParameterSet = { known: ['name'] }
export const PERMS: QueryParameterSet = { known: ['id', 'action'] }

const READS_ELSEWHERE = new Map([
  ['fields', ': POST …/:id/fetch takes fields'],
  ['related', ': POST …/:id/fetch takes related'],
  ['version', ': GET …/:id/history/:version shows a version'],
])
export const READ: QueryParameterSet = { known: ['asOf'], elsewhere: (name) => READS_ELSEWHERE.get(name) }

const METHODS_WITH_BODY = ['POST', 'PUT', 'PATCH']

/** For a route that takes no parameters. */
export function refuseParameters({ method, query }: FastifyRequest): void {
  const hasBody = METHODS_WITH_BODY.includes(method)
  const faults = listUnknownParameters(query as object, hasBody ? IN_BODY : NONE)
  if (faults.length > 0) throw new VersoError('bad-request', faults.slice(0, 20).join('; '))
}

/** The version that a delete names, if it does. A misspelled one must not delete whatever version is there. */
export function versionOf(request: FastifyRequest, habits: Habits): { readonly version?: number } {
  const query = habits.parameters(request.query as object, DELETES)
  const faults = listUnknownParameters(query, DELETES)
  const { version } = query as { readonly version?: unknown }
  const isVersion = typeof version === 'string' && /^\d{1,16}$/.test(version)
  if (version !== undefined && !isVersion) faults.push('version must be a whole number from 0')
  if (faults.length > 0) throw new VersoError('bad-request', faults.slice(0, 20).join('; '))
  return isVersion ? { version: Number(version) } : {}
}

/** A read by what its query says: unknown parameters are refused together with what else is wrong with it. */
export async function readWith<T>(
  request: FastifyRequest,
  habits: Habits,
  parameters: QueryParameterSet,
  read: (query: Readonly<Record<string, unknown>>) => Promise<T>,
): Promise<T> {
  const query = habits.parameters(request.query as Readonly<Record<string, unknown>>, parameters)
  const faults = listUnknownParameters(query, parameters)
  if (faults.length === 0) return read(query)
  const other = await read(query).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (other instanceof VersoError && other.kind === 'bad-request') faults.push(other.message)
  throw new VersoError('bad-request', faults.slice(0, 20).join('; '))
}
