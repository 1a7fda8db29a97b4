// Turns the description of a route into an operation of an OpenAPI document. Operations on a model are templates for all models.
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/values/value.js'
import {
  JSON_CONTENT,
  MODEL_COMPONENT,
  refTo,
  type AnswerDocs,
  type BodyDocs,
  type OperationAccess,
  type OperationDocs,
} from '../route/documentation.js'
import type { HttpMethod } from '../route/resource.js'
import { listErrorResponses } from './error-responses.js'
import { describePathParameters, refToParameter } from './parameters.js'

/** A route that the server has registered. */
export interface DocumentedRoute {
  readonly method: HttpMethod
  /** Without the base path, such as `/ws/rest/:model/:id`. */
  readonly path: string
  readonly docs: OperationDocs
  readonly isAboutRecords: boolean
}

/** In the text of a template, this stands for the name of the model. */
export const MODEL_NAME = '{model}'

export interface OperationOptions {
  readonly hasBasicAuth: boolean
  /** Errors about records are sent as 200. */
  readonly sendsErrorsAs200: boolean
}

export function isModelRoute({ docs }: DocumentedRoute): boolean {
  return docs.group === undefined
}

/** Returns the path as OpenAPI writes it: `/ws/rest/{model}/{id}`. */
export function toPathTemplate(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}')
}

export function describeOperation(route: DocumentedRoute, options: OperationOptions): JsonObject {
  const { docs, path } = route
  const isOfModel = isModelRoute(route)
  const parameters = docs.parameters ?? [
    ...describePathParameters(path, isOfModel),
    ...(docs.query?.known ?? []).map(refToParameter),
    ...(docs.headers ?? []).map(refToParameter),
  ]
  return {
    operationId: isOfModel ? `${docs.id}${MODEL_COMPONENT}` : docs.id,
    tags: [docs.group ?? MODEL_NAME, ...(docs.moreTags ?? [])],
    summary: docs.summary,
    ...(docs.description === undefined ? {} : { description: docs.description }),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(docs.body ? { requestBody: describeBody(docs.body) } : {}),
    responses: describeAnswers(route, options),
    ...describeSecurity(docs.access, options),
  }
}

/** Parts of operations that a document has once. */
export interface SharedParts {
  readonly responses: Record<string, JsonObject>
  readonly requestBodies: Record<string, JsonObject>
  /** Responses of each model, by the ending of the schema of their body. */
  readonly modelResponses: Record<string, JsonObject>
}

/** Moves parts that several operations have to the shared ones. Returns the operation with references to them. */
export function shareParts(
  { docs }: DocumentedRoute,
  operation: JsonObject,
  shared: SharedParts,
): JsonObject {
  const name = `Verso${docs.id.charAt(0).toUpperCase()}${docs.id.slice(1)}`
  const { requestBody, responses } = operation as {
    requestBody?: JsonObject
    responses: Record<string, JsonObject>
  }
  const moved = Object.entries(responses).map(([status, part]) => [
    status,
    shareResponse(part, status === '200' ? name : `${name}${status}`, shared),
  ])
  return {
    ...operation,
    ...(requestBody ? { requestBody: shareBody(requestBody, name, shared) } : {}),
    responses: Object.fromEntries(moved) as JsonObject,
  }
}

function shareBody(body: JsonObject, name: string, { requestBodies }: SharedParts): JsonObject {
  const text = JSON.stringify(body)
  if (text.includes(MODEL_COMPONENT) || text.includes('{example ')) return body
  requestBodies[name] = body
  return { $ref: `#/components/requestBodies/${name}` }
}

function shareResponse(
  response: JsonObject,
  name: string,
  { responses, modelResponses }: SharedParts,
): JsonObject {
  if (response['$ref'] !== undefined) return response
  const [, ending] = /schemas\/\{Model\}(\w+)/.exec(JSON.stringify(response)) ?? []
  if (ending === undefined) {
    responses[name] = response
    return { $ref: `#/components/responses/${name}` }
  }
  const known = modelResponses[ending]
  // With compatibility for existing clients, only some operations send errors as 200.
  if (known && !isDeepStrictEqual(known['content'], response['content'])) return response
  const headers = { ...(known?.['headers'] as JsonObject), ...(response['headers'] as JsonObject) }
  modelResponses[ending] = { ...response, headers }
  return { $ref: `#/components/responses/${MODEL_COMPONENT}${ending}` }
}

/** The document lists the schemes of most operations once, for all. */
export function listSecuritySchemes({ hasBasicAuth }: OperationOptions): JsonObject {
  return {
    session: {
      type: 'apiKey',
      in: 'cookie',
      name: 'JSESSIONID',
      description: 'The cookie of a session, from a login.',
    },
    key: { type: 'apiKey', in: 'header', name: 'API-KEY', description: 'An API key.' },
    bearer: { type: 'http', scheme: 'bearer', description: 'An API key.' },
    ...(hasBasicAuth ? { basic: { type: 'http', scheme: 'basic' } } : {}),
  }
}

function describeSecurity(access: OperationAccess, options: OperationOptions): JsonObject {
  if (access === 'public') return { security: [] }
  if (access !== 'password') return {}
  return { security: [{ session: [] }, ...(options.hasBasicAuth ? [{ basic: [] }] : [])] }
}

/** In the text of a template, this stands for an example. */
export function toExamplePlaceholder(kind: NonNullable<BodyDocs['example']>): string {
  return `{example ${kind}}`
}

function describeBody({ content, isOptional = false, example: kind, fixedExample }: BodyDocs): JsonObject {
  const example = kind ? toExamplePlaceholder(kind) : fixedExample
  return {
    required: !isOptional,
    content: Object.fromEntries(
      Object.entries(content).map(([type, schema]) => [
        type,
        { schema, ...(example === undefined ? {} : { example }) },
      ]),
    ),
  }
}

function describeAnswers({ docs, isAboutRecords }: DocumentedRoute, options: OperationOptions): JsonObject {
  const sentAs200 = options.sendsErrorsAs200 && isAboutRecords
  const answers = Object.entries(docs.answers).map(([status, answer]) => [
    status,
    describeAnswer(answer, sentAs200 && status === '200'),
  ])
  return { ...(Object.fromEntries(answers) as JsonObject), ...listErrorResponses(docs.errors, sentAs200) }
}

function describeAnswer(
  { description, content, headers = [], example }: AnswerDocs,
  mayFail: boolean,
): JsonObject {
  return {
    description,
    headers: Object.fromEntries(
      ['X-Request-Id', ...headers].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
    ),
    ...(content
      ? {
          content: Object.fromEntries(
            Object.entries(mayFail ? addErrorBody(content) : content).map(([type, schema]) => [
              type,
              { schema, ...(example === undefined ? {} : { example }) },
            ]),
          ),
        }
      : {}),
  }
}

/** With compatibility for existing clients, the body of a 200 may be an error. */
function addErrorBody(content: NonNullable<AnswerDocs['content']>): NonNullable<AnswerDocs['content']> {
  const { [JSON_CONTENT]: schema } = content
  const error = refTo('VersoError')
  return { ...content, [JSON_CONTENT]: schema ? { anyOf: [schema, error] } : error }
}
