// The parameters and headers of the API documents, by name.
import { DEFAULT_PAGE_RECORDS } from '../../model/query/search.js'
import type { JsonObject } from '../../model/values/value.js'
import { VERSION_SCHEMA } from '../../formats/json-schema.js'
import { COUNT_SCHEMA, refTo, type AnswerHeaderName, type RequestHeaderName } from '../route/documentation.js'

const TEXT: JsonObject = { type: 'string' }

interface ParameterDocs {
  readonly description: string
  readonly schema: JsonObject
  /** The parameter may be repeated. */
  readonly isList?: boolean
  readonly allowEmptyValue?: boolean
}

/** Query parameters by name. Each has one meaning in all operations, except for those of `OTHER_MEANINGS`. */
export const QUERY_PARAMETERS: Readonly<Record<string, ParameterDocs>> = {
  offset: { description: 'The number of records to skip.', schema: COUNT_SCHEMA },
  limit: {
    description: `The maximum number of records; ${DEFAULT_PAGE_RECORDS} by default. A larger limit than the service allows is lowered.`,
    schema: COUNT_SCHEMA,
  },
  after: { description: 'The cursor of the previous page, from its `Link` header.', schema: TEXT },
  fields: {
    description: 'Names of fields and paths such as `company.name`, separated by commas.',
    schema: TEXT,
  },
  sortBy: {
    description: 'Names of fields and paths, separated by commas. A minus before one reverses its order.',
    schema: TEXT,
  },
  filter: { description: "A condition such as `age >= 18 and name like 'A%'`.", schema: TEXT },
  q: { description: 'Words that occur in the text fields of a list.', schema: TEXT },
  before: {
    description: 'The `next` of the previous page: only earlier changes are found.',
    schema: COUNT_SCHEMA,
  },
  archived: {
    description: 'True to include archived records.',
    schema: { type: 'string', enum: ['true', 'false'] },
  },
  asOf: {
    description:
      'A point in time: RFC 3339, or a date, which means midnight UTC. The answer is as it was then.',
    schema: TEXT,
  },
  count: { description: 'Omits the total.', schema: { type: 'string', enum: ['none'] } },
  version: { description: 'The version that the request is based on.', schema: VERSION_SCHEMA },
  name: { description: 'The field. The name field of the model by default.', schema: TEXT },
  id: { description: 'A record.', schema: refTo('VersoId') },
  action: {
    description: 'One action. The answer is 403 if it is not permitted.',
    schema: { type: 'string', enum: ['read', 'create', 'write', 'remove', 'export'] },
  },
  since: {
    description: 'The last sequence number that the client has seen; 0 for the beginning.',
    schema: COUNT_SCHEMA,
  },
  wait: { description: 'Seconds to wait for the next change; at most 30.', schema: COUNT_SCHEMA },
  model: {
    description: 'Names of models, separated by commas or repeated.',
    schema: { type: 'array', items: TEXT },
    isList: true,
  },
  token: { description: 'The token of the one-time link.', schema: TEXT },
  write: {
    description: 'Demands that the service can write. It needs no value.',
    schema: TEXT,
    allowEmptyValue: true,
  },
}

/** Path parameters of operations on a model. */
const MODEL_PATH_PARAMETERS: Readonly<Record<string, ParameterDocs>> = {
  id: { description: 'The record.', schema: refTo('VersoId') },
  version: { description: 'A version of the record.', schema: VERSION_SCHEMA },
}
/** Path parameters of other operations. All others are texts. */
const OTHER_PATH_PARAMETERS: Readonly<Record<string, ParameterDocs>> = {
  id: { description: 'The record.', schema: refTo('VersoId') },
  session: { description: 'The id of the session from the list of sessions.', schema: TEXT },
  model: { description: 'The name of a model.', schema: TEXT },
}

export const REQUEST_HEADERS: Readonly<Record<RequestHeaderName, ParameterDocs>> = {
  'Idempotency-Key': {
    description: 'A repeated request with the same key gets the first answer again, for 24 hours.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  'If-Match': {
    description: 'The version that the request is based on, such as `"3"`, or an ETag of the record.',
    schema: TEXT,
  },
  'If-None-Match': { description: 'An ETag. The answer is 304 if it is still current.', schema: TEXT },
  Prefer: {
    description:
      '`merge=fields` merges an update with changes of other fields. `return=representation` returns an object after a delete.',
    schema: TEXT,
  },
  'Last-Event-ID': { description: 'Continues a stream of events; replaces `since`.', schema: TEXT },
  'If-Range': { description: 'An ETag. `Range` applies only if it is still current.', schema: TEXT },
  Range: { description: 'A part of the file, such as `bytes=0-1023`.', schema: TEXT },
}

type CommonHeaderName = 'X-Request-Id' | 'Retry-After'

export const ANSWER_HEADERS: Readonly<Record<AnswerHeaderName | CommonHeaderName, ParameterDocs>> = {
  'X-Request-Id': { description: 'Identifies the request in the log of the service.', schema: TEXT },
  'Retry-After': { description: 'Seconds after which a retry may succeed.', schema: COUNT_SCHEMA },
  ETag: { description: 'Identifies this answer. For a record it begins with the version.', schema: TEXT },
  Link: { description: 'The first, previous, next and last page.', schema: TEXT },
  Location: { description: 'The path of the new record, or of the next page.', schema: TEXT },
  'X-Next-After': {
    description: 'The cursor of the next page, if `Link` has no room for it.',
    schema: TEXT,
  },
  'X-Commit-Seq': {
    description: 'The sequence number of the last change that the page reflects.',
    schema: COUNT_SCHEMA,
  },
  'Idempotency-Replayed': {
    description: 'Present if the answer repeats that to an earlier request with the same key.',
    schema: { type: 'string', const: 'true' },
  },
  'Preference-Applied': { description: 'The preference that the service has followed.', schema: TEXT },
  'Set-Cookie': { description: 'The cookies JSESSIONID and CSRF-TOKEN.', schema: TEXT },
  'X-CSRF-Token': { description: 'The value of the cookie CSRF-TOKEN.', schema: TEXT },
  'Content-Disposition': { description: 'The name of the file.', schema: TEXT },
  'Accept-Ranges': { description: 'The file may be read in parts.', schema: TEXT },
  'Content-Range': { description: 'The part of the file.', schema: TEXT },
}

/** Returns the components `parameters` and `headers` of a document. */
export function describeParameterComponents(): {
  readonly parameters: JsonObject
  readonly headers: JsonObject
} {
  const query = Object.entries(QUERY_PARAMETERS).map(([name, docs]) => [
    name,
    describeParameter('query', name, docs),
  ])
  const paths = Object.entries(MODEL_PATH_PARAMETERS).map(([name, docs]) => [
    toPathComponent(name),
    describeParameter('path', name, docs),
  ])
  const headers = Object.entries(REQUEST_HEADERS).map(([name, docs]) => [
    name,
    describeParameter('header', name, docs),
  ])
  const answers = Object.entries(ANSWER_HEADERS).map(([name, { description, schema }]) => [
    name,
    { description, schema },
  ])
  return {
    parameters: Object.fromEntries([...query, ...paths, ...headers]) as JsonObject,
    headers: Object.fromEntries(answers) as JsonObject,
  }
}

/** Returns the parameters of a path such as `/ws/rest/:model/:id`, apart from the model of an operation on it. */
export function describePathParameters(path: string, isOfModel: boolean): readonly JsonObject[] {
  return listPathNames(path)
    .filter((name) => !isOfModel || (name !== 'model' && name !== 'field'))
    .map((name) =>
      isOfModel && MODEL_PATH_PARAMETERS[name]
        ? { $ref: `#/components/parameters/${toPathComponent(name)}` }
        : describeParameter(
            'path',
            name,
            OTHER_PATH_PARAMETERS[name] ?? { description: `The ${name}.`, schema: TEXT },
          ),
    )
}

/** Returns the parameters for the field of a file. */
export function describeFileField(names: readonly string[]): JsonObject {
  return describeParameter('path', 'field', {
    description: 'A field for files.',
    schema: { type: 'string', enum: names },
  })
}

export function refToParameter(name: string): JsonObject {
  if (!QUERY_PARAMETERS[name] && !(name in REQUEST_HEADERS))
    throw new Error(`the parameter ${name} has no description: add it to QUERY_PARAMETERS`)
  return { $ref: `#/components/parameters/${name}` }
}

function listPathNames(path: string): readonly string[] {
  return [...path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '')
}

/** `id` and `version` are also query parameters. */
function toPathComponent(name: string): string {
  return `path-${name}`
}

function describeParameter(
  place: 'query' | 'path' | 'header',
  name: string,
  { description, schema, isList, allowEmptyValue }: ParameterDocs,
): JsonObject {
  return {
    name,
    in: place,
    description,
    ...(place === 'path' ? { required: true } : {}),
    ...(isList ? { style: 'form', explode: true } : {}),
    ...(allowEmptyValue ? { allowEmptyValue: true } : {}),
    schema,
  }
}
