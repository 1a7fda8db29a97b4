// Errors of the client. Each failure is a RequestError, and most kinds have a class of their own.
import type { UserReference } from '../model/definition/record-types.js'
import type { ConflictData, WireRecord } from '../wire.js'

type PlainObject = Readonly<Record<string, unknown>>

/** Values of a field on both sides of a conflict. */
export type FieldSides = ConflictData['fields'][string]

/** Facts from which an error is made. A shared failure, such as that of a login, becomes one error for each call. */
export interface FailureDetails {
  /** Kind that the service names, or `network`, `timeout`, `session`, `redirect`, `unexpected`. */
  readonly kind: string
  readonly message: string
  /** HTTP status; 0 if there was no response. */
  readonly status?: number
  readonly fields?: PlainObject | undefined
  readonly requestId?: string | undefined
  readonly data?: PlainObject
  readonly retryAfterMs?: number | undefined
  /** Key of the write. A later call with the same key and the same data takes effect at most once. */
  readonly idempotencyKey?: string | undefined
  readonly cause?: unknown
}

/** A request that failed. `kind` says why; see docs/reference/errors.md for the kinds of the service. */
export class RequestError extends Error {
  readonly kind: string
  /** HTTP status; 0 if there was no response. */
  readonly status: number
  /** Errors by field; for a conflict, the values of each field. */
  readonly fields: PlainObject
  /** Finds the request in the log of the service. */
  readonly requestId: string | undefined
  /** Details from the response. */
  readonly data: PlainObject
  readonly retryAfterMs: number | undefined
  /** Key of the failed write. Repeat the write with it if you do not know whether it took effect. */
  readonly idempotencyKey: string | undefined

  constructor(readonly details: FailureDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'RequestError'
    this.kind = details.kind
    this.status = details.status ?? 0
    this.fields = details.fields ?? {}
    this.requestId = details.requestId
    this.data = details.data ?? {}
    this.retryAfterMs = details.retryAfterMs
    this.idempotencyKey = details.idempotencyKey
    // Keeps the details out of printed errors: they repeat the other properties.
    Object.defineProperty(this, 'details', { enumerable: false })
  }
}

/** The request is malformed, or names an unknown field (400). */
export class BadRequestError extends RequestError {}
/** No session, a failed login, or a key that is not valid (401). */
export class UnauthenticatedError extends RequestError {}
/** The user may not do this (403). */
export class ForbiddenError extends RequestError {}
/** The record or the model does not exist, or the user may not see it (404). */
export class NotFoundError extends RequestError {}
/** Another record has this value already (409). */
export class DuplicateError extends RequestError {}
/** Other records refer to this one (409). */
export class StillReferencedError extends RequestError {}
/** The change log no longer has what was asked for (410). Read the lists again. */
export class GoneError extends RequestError {}
/** The request, the file or the response is too large (413). */
export class TooLargeError extends RequestError {}
/** The service cannot do this now: too many requests, busy, or out of storage (429, 502, 503, 504, 507). */
export class BusyError extends RequestError {}
/** There was no complete response. A write may have taken effect: see `idempotencyKey`. */
export class NetworkError extends RequestError {}
/** The call took longer than its `timeout`. A write may have taken effect: see `idempotencyKey`. */
export class TimeoutError extends RequestError {}

/** Values that the service rejected (422). `fields` has a message for each field. */
export class InvalidError extends RequestError {
  declare readonly fields: Readonly<Record<string, string>>
}

/** Details of an update that was rejected, as the client knows them. */
export interface ConflictSides {
  readonly base?: WireRecord | undefined
  readonly ours?: PlainObject
}

/** The record is no longer at the version that the request names (409). Nothing was written. */
export class ConflictError extends RequestError {
  /** All fields that either side changed, with their values and a verdict. */
  declare readonly fields: Readonly<Record<string, FieldSides>>
  /** The record that the changes are based on; undefined if it is no longer known. */
  readonly base: WireRecord | undefined
  /** The changes that were sent. */
  readonly ours: PlainObject
  /** The record as it is now. */
  readonly theirs: WireRecord
  /** The version that the request named. */
  readonly expected: number
  /** The version now. */
  readonly current: number
  /** True if no field was changed by both sides. */
  readonly mergeable: boolean
  readonly changedBy: UserReference | null
  readonly changedOn: string | null

  constructor(details: FailureDetails, sides: ConflictSides = {}) {
    super({ ...details, fields: (details.data?.['fields'] ?? {}) as PlainObject })
    const { data } = this as { data: PlainObject }
    this.theirs = data['theirs'] as WireRecord
    this.expected = data['expected'] as number
    this.current = data['current'] as number
    this.mergeable = data['mergeable'] === true
    this.changedBy = (data['changedBy'] ?? null) as UserReference | null
    this.changedOn = (data['changedOn'] ?? null) as string | null
    this.base = sides.base ?? this.#rebuildBase()
    this.ours = sides.ours ?? this.#listOurs()
  }

  /** The earlier record is the current one with the earlier values of the fields that have changed. */
  #rebuildBase(): WireRecord | undefined {
    if (this.data['baseKnown'] !== true || this.data['isShortened'] === true) return undefined
    const earlier = Object.entries(this.fields).map(([name, { base }]) => [name, base])
    const base = { ...this.theirs, ...Object.fromEntries(earlier), version: this.expected } as Record<
      string,
      unknown
    >
    // Nobody knows any more who made the earlier version, and when.
    delete base['updatedOn']
    delete base['updatedBy']
    return base as unknown as WireRecord
  }

  #listOurs(): PlainObject {
    const changed = Object.entries(this.fields).filter(([, { verdict }]) => verdict !== 'theirs')
    return Object.fromEntries(changed.map(([name, { ours }]) => [name, ours]))
  }
}

type ErrorClass = new (details: FailureDetails) => RequestError

/** Class and its name, which survives a bundler that renames classes. */
const CLASSES: Readonly<Record<string, readonly [ErrorClass, string]>> = {
  'bad-request': [BadRequestError, 'BadRequestError'],
  unauthenticated: [UnauthenticatedError, 'UnauthenticatedError'],
  session: [UnauthenticatedError, 'UnauthenticatedError'],
  forbidden: [ForbiddenError, 'ForbiddenError'],
  'unknown-model': [NotFoundError, 'NotFoundError'],
  'not-found': [NotFoundError, 'NotFoundError'],
  conflict: [ConflictError, 'ConflictError'],
  'stale-match': [ConflictError, 'ConflictError'],
  'not-unique': [DuplicateError, 'DuplicateError'],
  'still-referenced': [StillReferencedError, 'StillReferencedError'],
  gone: [GoneError, 'GoneError'],
  'too-large': [TooLargeError, 'TooLargeError'],
  invalid: [InvalidError, 'InvalidError'],
  'too-many': [BusyError, 'BusyError'],
  busy: [BusyError, 'BusyError'],
  'storage-full': [BusyError, 'BusyError'],
  network: [NetworkError, 'NetworkError'],
  timeout: [TimeoutError, 'TimeoutError'],
}

/** Makes the error of a kind. */
export function createRequestError(details: FailureDetails): RequestError {
  const [Class, name] = (Object.hasOwn(CLASSES, details.kind) ? CLASSES[details.kind] : undefined) ?? [
    RequestError,
    'RequestError',
  ]
  return named(new Class(details), name)
}

/** A conflict with what the client knows about both sides. */
export function attachSides({ details }: ConflictError, sides: ConflictSides): ConflictError {
  return named(new ConflictError(details, sides), 'ConflictError')
}

function named<E extends Error>(error: E, name: string): E {
  error.name = name
  // Errors are printed with their own enumerable properties; the name is already in the first line.
  Object.defineProperty(error, 'name', { enumerable: false })
  return error
}
