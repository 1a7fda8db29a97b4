// Reads the paths and headers of requests about records. request/bodies.ts reads their bodies.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import type { App } from '../../service/context/app.js'
import { requireKnownModel } from '../../service/access/permission-checks.js'
import { requirePrincipal } from './guard.js'

export interface RecordRouteParams {
  readonly model: string
  readonly id: string
}

/** Fails with 404 for an unknown model and for a model that the principal may not know. Call it before the body is checked. */
export function readRouteModel(app: App, request: FastifyRequest): Model {
  return requireKnownModel(app, requirePrincipal(request), (request.params as RecordRouteParams).model)
}

export function readRouteId(model: Model, request: FastifyRequest): number {
  return parseRecordId(model, (request.params as RecordRouteParams).id)
}

/** Parses an optional id of a query string. */
export function parseOptionalRecordId(model: Model, id: unknown): number | undefined {
  return id === undefined ? undefined : parseRecordId(model, typeof id === 'string' ? id : '')
}

function parseRecordId({ name }: Model, id: string): number {
  if (!/^[1-9][0-9]{0,15}$/.test(id) || !Number.isSafeInteger(Number(id))) {
    throw new VersoError('not-found', `There is no ${name} with this id: ids are whole numbers from 1`)
  }
  return Number(id)
}

/** Accepts a version (`If-Match: "3"`) or a complete ETag of a response. */
export function readIfMatch(request: FastifyRequest): { readonly ifMatch?: number } {
  const header = request.headers['if-match']
  if (header === undefined) return {}
  const version = /^(?:W\/)?"(\d{1,16})(?:\.[^"]*)?"$/.exec(header.trim())?.[1]
  if (version === undefined)
    throw new VersoError('bad-request', 'If-Match must name one version, such as "3"')
  return { ifMatch: Number(version) }
}

/** For requests with several records: each names its own version, so one `If-Match` for all would be ignored silently. */
export function refuseIfMatch(request: FastifyRequest): void {
  if (request.headers['if-match'] !== undefined)
    throw new VersoError('bad-request', 'If-Match is for one record: of several each names its "version"')
}

export function readIdempotencyKey(request: FastifyRequest): { readonly idempotencyKey?: string } {
  const key = request.headers['idempotency-key']
  if (key === undefined) return {}
  return { idempotencyKey: Array.isArray(key) ? key.join(', ') : key }
}

/** For a response with a `noun` that is shown only once: an idempotency key would store it. */
export function refuseIdempotencyKey({ headers }: FastifyRequest, noun: string): void {
  if (headers['idempotency-key'] !== undefined)
    throw new VersoError(
      'bad-request',
      `A ${noun} is shown once: its answer cannot be kept under an Idempotency-Key`,
    )
}
