// The error responses of the API documents, one for each HTTP status, from the table of error kinds.
import { ERROR_KINDS, type ErrorKind } from '../../errors.js'
import { VERSION_SCHEMA, ID_SCHEMA } from '../../formats/json-schema.js'
import type { JsonObject } from '../../model/values/value.js'
import { describeList, JSON_CONTENT, refTo } from '../route/documentation.js'
import { INTERNAL_STATUS, RECORD_ERROR_STATUSES, STATUS_BY_KIND } from '../route/error-status.js'
import { PROBLEM_JSON } from '../route/errors.js'
import { describeObject } from './shared-schemas.js'

const TEXT: JsonObject = { type: 'string' }
const EXAMPLE_REQUEST = '8d3eac05-d08d-4989-bb5f-c3afe81aa034'
const HEADERS: JsonObject = { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } }

/** Details of a conflict, with which a client can resolve it. */
const CONFLICT_DETAILS: JsonObject = {
  entityName: TEXT,
  entityId: ID_SCHEMA,
  expected: VERSION_SCHEMA,
  current: VERSION_SCHEMA,
  theirs: refTo('VersoRecord'),
  baseKnown: { type: 'boolean' },
  mergeable: { type: 'boolean' },
  fields: {
    type: 'object',
    additionalProperties: describeObject(
      { ours: {}, theirs: {}, verdict: { type: 'string', enum: ['ours', 'theirs', 'same', 'clash'] } },
      { base: {} },
    ),
  },
  changedBy: { anyOf: [refTo('VersoUser'), { type: 'null' }] },
  changedOn: { type: ['string', 'null'], format: 'date-time' },
  references: describeList({ type: 'object', additionalProperties: true }),
}

/** Details that errors of a status may have. */
const DETAILS: Readonly<Record<number, JsonObject>> = { 409: CONFLICT_DETAILS, 412: CONFLICT_DETAILS }

type ReportedKind = ErrorKind | 'internal'

interface StatusDocs {
  readonly status: number
  /** The name of the schema. The response is `Error409`. */
  readonly name: string
  readonly title: string
  readonly kinds: readonly ReportedKind[]
}

const STATUSES: readonly StatusDocs[] = listStatuses()

function listStatuses(): readonly StatusDocs[] {
  const all: readonly ReportedKind[] = [...ERROR_KINDS, 'internal']
  const byStatus = new Map<number, ReportedKind[]>()
  for (const kind of all) {
    const [status] = getStatus(kind)
    byStatus.set(status, [...(byStatus.get(status) ?? []), kind])
  }
  return [...byStatus].map(([status, kinds]) => ({
    status,
    name: `VersoError${status}`,
    title: [...new Set(kinds.map((kind) => getStatus(kind)[1]))].join(', or: '),
    kinds,
  }))
}

function getStatus(kind: ReportedKind): readonly [status: number, title: string] {
  return kind === 'internal' ? INTERNAL_STATUS : STATUS_BY_KIND[kind]
}

/** Any error; for statuses that every operation may have. */
const ANY_ERROR = 'VersoError'
/** The response for statuses that an operation does not list. */
const ANY_FAILURE = 'Failure'
/** Its schema has no kinds with details: in generated types, the kind of an error then tells which details it has. */
const FAILURE_SCHEMA = 'VersoFailure'
/** Any request may fail like this, so operations do not list these. */
const COMMON_KINDS: ReadonlySet<ErrorKind> = new Set([
  'too-large',
  'media-type',
  'misdirected',
  'too-many',
  'storage-full',
])
const PROBLEM_ENDING = 'Problem'

/** Returns the schemas of error bodies by name: each as the service's envelope and as a problem (RFC 9457). */
export function describeErrorSchemas(): JsonObject {
  const kinds = STATUSES.flatMap((each) => each.kinds)
  const failures = STATUSES.filter(({ status }) => !DETAILS[status]).flatMap((each) => each.kinds)
  return Object.fromEntries([
    [ANY_ERROR, describeErrorBody(kinds, {})],
    [`${ANY_ERROR}${PROBLEM_ENDING}`, describeProblem(kinds, {})],
    [FAILURE_SCHEMA, describeErrorBody(failures, {})],
    [`${FAILURE_SCHEMA}${PROBLEM_ENDING}`, describeProblem(failures, {})],
    ...STATUSES.flatMap(({ status, name, kinds: own }) => [
      [name, describeErrorBody(own, DETAILS[status] ?? {})],
      [`${name}${PROBLEM_ENDING}`, describeProblem(own, DETAILS[status] ?? {})],
    ]),
  ]) as JsonObject
}

/** Returns the components `responses`. Those with the ending `Problem` are for errors that are otherwise sent as 200. */
export function describeErrorResponses(): JsonObject {
  const failure = 'A failure that any request may have, such as: too large, too many requests, busy.'
  return Object.fromEntries([
    [ANY_FAILURE, describeErrorResponse(failure, FAILURE_SCHEMA)],
    ...STATUSES.flatMap(({ status, name, title, kinds }) => {
      const response = describeErrorResponse(`${title}.`, name, buildExample(status, kinds))
      const { [PROBLEM_JSON]: problem } = response['content'] as JsonObject
      return [
        [`Error${status}`, response],
        [`Error${status}${PROBLEM_ENDING}`, { ...response, content: { [PROBLEM_JSON]: problem } }],
      ]
    }),
  ]) as JsonObject
}

/**
 * Returns the error responses of an operation by status. With `sentAs200`, errors about records have these statuses only for clients that
 * accept problems.
 */
export function listErrorResponses(kinds: readonly ErrorKind[], sentAs200: boolean): JsonObject {
  const own = kinds.filter((kind) => !COMMON_KINDS.has(kind))
  const statuses = [...new Set(own.map((kind) => STATUS_BY_KIND[kind][0]))].sort((a, b) => a - b)
  const refer = (status: number) =>
    `Error${status}${sentAs200 && RECORD_ERROR_STATUSES.includes(status) ? PROBLEM_ENDING : ''}`
  return {
    ...Object.fromEntries(statuses.map((status) => [String(status), refToResponse(refer(status))])),
    default: refToResponse(ANY_FAILURE),
  }
}

function refToResponse(name: string): JsonObject {
  return { $ref: `#/components/responses/${name}` }
}

function describeErrorBody(kinds: readonly ReportedKind[], details: JsonObject): JsonObject {
  return describeObject(
    {
      status: { type: 'integer', enum: [-1, -4], description: '-4 for invalid fields.' },
      data: {
        ...describeObject(
          { kind: { type: 'string', enum: kinds }, title: TEXT, message: TEXT, requestId: TEXT },
          details,
        ),
        additionalProperties: true,
      },
    },
    { errors: { type: 'object', additionalProperties: TEXT, description: 'All field errors by field.' } },
  )
}

function describeProblem(kinds: readonly ReportedKind[], details: JsonObject): JsonObject {
  return {
    ...describeObject(
      {
        type: TEXT,
        title: TEXT,
        status: { type: 'integer' },
        detail: TEXT,
        instance: TEXT,
        kind: { type: 'string', enum: kinds },
      },
      // RFC 9457 has a member `title`, so the details of a conflict follow it.
      { errors: { type: 'object', additionalProperties: TEXT }, ...details },
    ),
    additionalProperties: true,
  }
}

function describeErrorResponse(description: string, name: string, example?: JsonObject): JsonObject {
  return {
    description,
    headers: HEADERS,
    content: {
      [JSON_CONTENT]: { schema: refTo(name), ...(example ? { example } : {}) },
      [PROBLEM_JSON]: { schema: refTo(`${name}${PROBLEM_ENDING}`) },
    },
  }
}

function buildExample(status: number, kinds: readonly ReportedKind[]): JsonObject {
  const [kind = 'internal'] = kinds
  const [, title] = getStatus(kind)
  const data = { kind, title, message: `${title}: an explanation`, requestId: EXAMPLE_REQUEST }
  return status === STATUS_BY_KIND.invalid[0]
    ? { status: -4, errors: { name: 'is required' }, data: { ...data, kind: 'invalid' } }
    : { status: -1, data }
}
