// How the API documents describe an operation, which is one method of a path. Every handler carries such a description, so a route without
// one does not compile.
import type { ErrorKind } from '../../errors.js'
import type { PermissionAction } from '../../model/access/permissions.js'
import type { QueryParameterSet } from '../../model/query/parameters.js'
import type { JsonObject } from '../../model/values/value.js'

/** In schemas of operations on a model, this stands for the name of the model's component. */
export const MODEL_COMPONENT = '{Model}'

/** Headings for operations that do not belong to a model. */
export const OPERATION_GROUPS = {
  Session: 'Log in and out, and set a password by a one-time link.',
  Records: 'Writes and changes of records of several models.',
  Models: 'The models, their fields and these documents.',
  Account: 'The account of the user: password, sessions, API keys.',
  Administration: 'Sessions of other users, and webhooks. For administrators.',
  Service: 'The state of the service.',
  Extensions: 'Routes that this installation adds.',
} as const
export type OperationGroup = keyof typeof OPERATION_GROUPS

/**
 * Who may use an operation. `password` excludes API keys: it needs a session or Basic authentication. `public` needs no credentials.
 */
export type OperationAccess = 'public' | 'login' | 'password' | 'admin'

export type RequestHeaderName =
  'Idempotency-Key' | 'If-Match' | 'If-None-Match' | 'Prefer' | 'Last-Event-ID' | 'Range' | 'If-Range'
export type AnswerHeaderName =
  | 'ETag'
  | 'Link'
  | 'Location'
  | 'X-Commit-Seq'
  | 'X-Next-After'
  | 'Idempotency-Replayed'
  | 'Preference-Applied'
  | 'Set-Cookie'
  | 'X-CSRF-Token'
  | 'Content-Disposition'
  | 'Content-Range'
  | 'Accept-Ranges'

export interface BodyDocs {
  /** Schemas by content type. */
  readonly content: Readonly<Record<string, JsonObject>>
  readonly isOptional?: boolean
  /** An example of the body that the document builds for each model. */
  readonly example?: 'create' | 'update' | 'patch' | 'mass'
  /** A fixed example. */
  readonly fixedExample?: unknown
}

export interface AnswerDocs {
  readonly description: string
  /** Schemas by content type; absent for an answer without a body. */
  readonly content?: Readonly<Record<string, JsonObject>>
  readonly headers?: readonly AnswerHeaderName[]
  readonly example?: unknown
}

export interface OperationDocs {
  /** The operation id. Operations on a model append the name of its component. */
  readonly id: string
  readonly summary: string
  readonly description?: string
  /** The heading of an operation that does not belong to a model. */
  readonly group?: OperationGroup
  readonly access: OperationAccess
  /** For an operation on a model: the user needs all actions of one of these lists. */
  readonly permits?: readonly (readonly PermissionAction[])[]
  /** The operation exists only for models with a binary field that the user may see. */
  readonly needsFile?: boolean
  readonly query?: QueryParameterSet
  readonly headers?: readonly RequestHeaderName[]
  /** All parameters of an operation whose parameters are its own. */
  readonly parameters?: readonly JsonObject[]
  /** Headings besides `group`. */
  readonly moreTags?: readonly string[]
  readonly body?: BodyDocs
  /** Answers by status. */
  readonly answers: Readonly<Record<number, AnswerDocs>>
  /** The kinds of errors that are specific to the operation. Every operation may also fail for reasons of the service. */
  readonly errors: readonly ErrorKind[]
}

export const JSON_CONTENT = 'application/json'

/** Returns the reference to a shared schema of the documents. */
export function refTo(name: string): JsonObject {
  return { $ref: `#/components/schemas/${name}` }
}

/** Returns the reference to a schema of the model. */
export function refToModel(suffix = ''): JsonObject {
  return refTo(`${MODEL_COMPONENT}${suffix}`)
}

/** Returns the schema of a successful answer in its envelope. Every answer has the keys of `others`. */
export function describeEnvelope(
  data: JsonObject,
  others: JsonObject = {},
  optional: JsonObject = {},
): JsonObject {
  return {
    type: 'object',
    required: ['status', ...Object.keys(others), 'data'],
    properties: { status: { type: 'integer', const: 0 }, ...others, data, ...optional },
  }
}

export function describeList(items: JsonObject): JsonObject {
  return { type: 'array', items }
}

/** An answer whose `data` is a list of these items. */
export function answerWithList(
  description: string,
  items: JsonObject,
  {
    headers,
    others = {},
    optional = {},
  }: {
    readonly headers?: readonly AnswerHeaderName[]
    readonly others?: JsonObject
    readonly optional?: JsonObject
  } = {},
): AnswerDocs {
  return {
    description,
    content: { [JSON_CONTENT]: describeEnvelope(describeList(items), others, optional) },
    ...(headers ? { headers } : {}),
  }
}

/** An answer with an empty list in `data`. */
export const EMPTY_ANSWER: AnswerDocs = {
  description: 'Done.',
  content: { [JSON_CONTENT]: refTo('VersoDone') },
  example: { status: 0, data: [] },
}

/** A JSON body whose `data` has this schema. */
export function bodyWithData(data: JsonObject, fixedExample?: unknown): BodyDocs {
  return {
    content: { [JSON_CONTENT]: { type: 'object', required: ['data'], properties: { data } } },
    ...(fixedExample === undefined ? {} : { fixedExample }),
  }
}

export const COUNT_SCHEMA: JsonObject = { type: 'integer', minimum: 0 }

/** The errors of every operation that needs credentials. */
export const LOGIN_ERRORS = [
  'bad-request',
  'unauthenticated',
  'forbidden',
] as const satisfies readonly ErrorKind[]
/** The errors of operations with a JSON body. */
export const BODY_ERRORS = ['too-large', 'media-type'] as const satisfies readonly ErrorKind[]
