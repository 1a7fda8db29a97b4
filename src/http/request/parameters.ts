// Query strings. A route rejects unknown parameters, unless the protocol filters them out.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { listUnknownParameters, type QueryParameterSet } from '../../model/query/parameters.js'
import type { Protocol } from '../compat/protocol.js'

export type QueryParameters = Readonly<Record<string, unknown>>

const NO_PARAMETERS: QueryParameterSet = { known: [] }
const OPTIONS_IN_BODY: QueryParameterSet = {
  known: [],
  elsewhere: () => ': this request reads its options from the body, not from the query string',
}
export const DELETE_PARAMETERS: QueryParameterSet = { known: ['version'] }
export const DETAILS_PARAMETERS: QueryParameterSet = { known: ['name'] }
export const PERMS_PARAMETERS: QueryParameterSet = { known: ['id', 'action'] }

const READ_PARAMETER_HINTS = new Map([
  ['fields', ': use POST …/:id/fetch to select fields'],
  ['related', ': use POST …/:id/fetch to select fields of related records'],
  ['version', ': use GET …/:id/history/:version to read a version'],
])
export const READ_PARAMETERS: QueryParameterSet = {
  known: ['asOf'],
  elsewhere: (name) => READ_PARAMETER_HINTS.get(name),
}

const MAX_REPORTED_ERRORS = 20
const METHODS_WITH_BODY = ['POST', 'PUT', 'PATCH']

/** For a route without query parameters. */
export function refuseParameters({ method, query }: FastifyRequest): void {
  const hasBody = METHODS_WITH_BODY.includes(method)
  const errors = listUnknownParameters(query as object, hasBody ? OPTIONS_IN_BODY : NO_PARAMETERS)
  if (errors.length > 0) throw createParameterError(errors)
}

/** Reads the optional version of a delete. A misspelled parameter is rejected: ignoring it would delete any version. */
export function readVersionParameter(
  request: FastifyRequest,
  protocol: Protocol,
): { readonly version?: number } {
  const query = protocol.filterParameters(request.query as object, DELETE_PARAMETERS)
  const errors = listUnknownParameters(query, DELETE_PARAMETERS)
  const { version: text } = query as { readonly version?: unknown }
  const version = parseVersionText(text)
  if (text !== undefined && version === undefined) errors.push('version must be a whole number from 0')
  if (errors.length > 0) throw createParameterError(errors)
  return version === undefined ? {} : { version }
}

/** Returns undefined for anything but the digits of a version. */
export function parseVersionText(text: unknown): number | undefined {
  return typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : undefined
}

/** Runs a read with its query parameters. The error about unknown parameters also lists every other error of the query. */
export async function readWithParameters<T>(
  request: FastifyRequest,
  protocol: Protocol,
  parameters: QueryParameterSet,
  read: (query: QueryParameters) => Promise<T>,
): Promise<T> {
  const query = protocol.filterParameters(request.query as QueryParameters, parameters)
  const errors = listUnknownParameters(query, parameters)
  if (errors.length === 0) return read(query)
  const readError = await read(query).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (readError instanceof VersoError && readError.kind === 'bad-request') errors.push(readError.message)
  throw createParameterError(errors)
}

function createParameterError(errors: readonly string[]): VersoError {
  return new VersoError('bad-request', errors.slice(0, MAX_REPORTED_ERRORS).join('; '))
}
