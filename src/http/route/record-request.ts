// What requests about records say in their paths, headers and bodies.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import type { FieldSelection } from '../../model/query/selection.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { requireKnownModel } from '../../service/access/permission-checks.js'
import { requirePrincipal } from './guard.js'

export interface RecordRouteParams {
  readonly model: string
  readonly id: string
}
export type QueryParameters = Readonly<Record<string, unknown>>

/** Before the body is looked at: a model that is not there is 404, whatever was sent, and so is one that may not be known. */
export function readRouteModel(app: App, request: FastifyRequest): Model {
  return requireKnownModel(app, requirePrincipal(request), (request.params as RecordRouteParams).model)
}

export function readRouteId(model: Model, request: FastifyRequest): number {
  return parseRecordId(model, (request.params as RecordRouteParams).id)
}

/** An id that may be missing. */
export function parseOptionalRecordId(model: Model, id: unknown): number | undefined {
  return id === undefined ? undefined : parseRecordId(model, typeof id === 'string' ? id : '')
}

function parseRecordId({ name }: Model, id: string): number {
  if (!/^[1-9][0-9]{0,15}$/.test(id) || !Number.isSafeInteger(Number(id))) {
    throw new VersoError('not-found', `There is no ${name} with this id: ids are whole numbers from 1`)
  }
  return Number(id)
}

/** `If-Match: "3"`, or the whole tag of an answer. */
export function readIfMatch(request: FastifyRequest): { readonly ifMatch?: number } {
  const header = request.headers['if-match']
  if (header === undefined) return {}
  const version = /^(?:W\/)?"(\d{1,16})(?:\.[^"]*)?"$/.exec(header.trim())?.[1]
  if (version === undefined)
    throw new VersoError('bad-request', 'If-Match must name one version, such as "3"')
  return { ifMatch: Number(version) }
}

/** Of several records each names its own version: one for all of them would be ignored, and whoever sent it deceived. */
export function refuseIfMatch(request: FastifyRequest): void {
  if (request.headers['if-match'] !== undefined)
    throw new VersoError('bad-request', 'If-Match is for one record: of several each names its "version"')
}

export function readIdempotencyKey(request: FastifyRequest): { readonly idempotencyKey?: string } {
  const key = request.headers['idempotency-key']
  if (key === undefined) return {}
  return { idempotencyKey: Array.isArray(key) ? key.join(', ') : key }
}

/** What an answer is to show, if the body says so. */
export function readFieldSelection(body: unknown): FieldSelection | undefined {
  if (!isObject(body)) return undefined
  const { fields = null, related = null } = body
  return fields === null && related === null ? undefined : { fields, related }
}

/** The `records` of a body, one at least. */
export function readRecordList(body: unknown): readonly unknown[] {
  const records = isObject(body) ? body['records'] : undefined
  if (Array.isArray(records) && records.length > 0) return records
  throw new VersoError(
    'bad-request',
    'The body must be a JSON object with a list in "records", one record at least',
  )
}
