// Describes the routes below /ext for the API documents, from their schemas. A route without a schema is not described.
import type { FastifySchema, RouteOptions } from 'fastify'
import type { ErrorKind } from '../../errors.js'
import { isObject, type JsonObject } from '../../model/values/value.js'
import type { DocumentedRoute } from '../openapi/operations.js'
import {
  BODY_ERRORS,
  JSON_CONTENT,
  LOGIN_ERRORS,
  type AnswerDocs,
  type BodyDocs,
  type OperationDocs,
} from '../route/documentation.js'
import { STATUS_BY_KIND } from '../route/error-status.js'
import { HTTP_METHODS, type HttpMethod } from '../route/resource.js'
import { toDocumentSchema, type SharedSchemas } from './document-schema.js'
import type { RouteAccess } from './route-plugin.js'

interface DescribedRoute {
  readonly method: HttpMethod
  /** Without the base path, such as `/ext/orders/:id`. */
  readonly path: string
  readonly access: RouteAccess
  readonly schema: FastifySchema
  /** Complete when all plugins are registered. */
  readonly readShared: () => SharedSchemas
}

/** Collects the routes that have a schema. */
export class RouteDocuments {
  readonly #routes: DescribedRoute[] = []

  constructor(private readonly basePath: string) {}

  add({ method, url, config, schema }: RouteOptions, readShared: () => SharedSchemas): void {
    const access = config?.access
    if (!schema || schema.hide === true || access === undefined) return
    const path = url.slice(this.basePath.length)
    for (const each of HTTP_METHODS.filter((known) => [method].flat().includes(known)))
      this.#routes.push({ method: each, path, access, schema, readShared })
  }

  /** Returns the operations. Each has an id of its own, and each pair of method and path occurs once. */
  list(): readonly DocumentedRoute[] {
    const used = new Set<string>()
    return this.#routes.flatMap((route) => {
      const { names, path } = readPath(route.path)
      const operation = `${route.method} ${path}`
      // Routes that differ only in the pattern of a parameter have the same path in a document.
      if (used.has(operation)) return []
      const id = chooseId(route.method, path, used)
      used.add(operation).add(id)
      const docs = describeRoute(route, id, names)
      return [{ method: route.method, path, docs, isAboutRecords: false }]
    })
  }
}

/** Returns the path as OpenAPI writes it, and the names of its parameters: `/ext/files/:id(^\\d+$)/*` is `/ext/files/{id}/{path}`. */
function readPath(routePath: string): { readonly path: string; readonly names: readonly string[] } {
  const path = routePath
    .replace(/::/g, '%3A')
    .replace(/:(\w+)(?:\((?:[^()]|\([^()]*\))*\))?\??/g, '{$1}')
    .replace(/\*/g, '{path}')
  return { path, names: [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '') }
}

/** Returns `extGetOrdersById` for `GET /ext/orders/{id}`. No operation of a model begins so. */
function chooseId(method: HttpMethod, path: string, used: ReadonlySet<string>): string {
  const words = path
    .replace(/^\/ext/, '')
    .replace(/\{(\w+)\}/g, ' by $1')
    .split(/[^A-Za-z0-9]+/)
  const stem = [method.toLowerCase(), ...words].map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  const id = `ext${stem.join('')}`
  for (let count = 2; ; count++) {
    const candidate = count === 2 ? id : `${id}_${count - 1}`
    if (!used.has(candidate)) return candidate
  }
}

function describeRoute(route: DescribedRoute, id: string, pathNames: readonly string[]): OperationDocs {
  const { schema, access, readShared, method, path } = route
  const shared = readShared()
  const { summary, description, tags = [], body } = schema
  const answers = describeRouteAnswers(schema.response, shared)
  return {
    id,
    summary: summary ?? `${method} ${path}`,
    ...(description === undefined ? {} : { description }),
    group: 'Extensions',
    ...(tags.length > 0 ? { moreTags: tags } : {}),
    access,
    parameters: [
      ...describePathNames(pathNames, schema.params, shared),
      ...describeParameters('query', schema.querystring ?? readQueryAlias(schema), shared),
      ...describeParameters('header', schema.headers, shared),
    ],
    ...(body === undefined || method === 'GET' ? {} : { body: describeRouteBody(body, shared) }),
    answers,
    errors: listErrors(access, body !== undefined).filter(
      (kind) => !(String(STATUS_BY_KIND[kind][0]) in answers),
    ),
  }
}

/** Fastify accepts both names. */
function readQueryAlias(schema: FastifySchema): unknown {
  return (schema as { readonly query?: unknown }).query
}

function listErrors(access: RouteAccess, hasBody: boolean): readonly ErrorKind[] {
  const own: readonly ErrorKind[] = access === 'public' ? ['bad-request'] : LOGIN_ERRORS
  return hasBody ? [...own, ...BODY_ERRORS, 'invalid'] : own
}

function describePathNames(
  names: readonly string[],
  params: unknown,
  shared: SharedSchemas,
): readonly JsonObject[] {
  const known = describeParameters('path', params, shared)
  return names.map(
    (name) =>
      known.find((parameter) => parameter['name'] === name) ?? {
        name,
        in: 'path',
        required: true,
        schema: { type: 'string' },
      },
  )
}

/** Returns the properties of the schema of an object as parameters. */
function describeParameters(
  place: 'query' | 'header' | 'path',
  schema: unknown,
  shared: SharedSchemas,
): readonly JsonObject[] {
  const { properties, required } = toDocumentSchema(schema, shared)
  if (!isObject(properties)) return []
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...own } = property as JsonObject
    const isRequired = place === 'path' || (Array.isArray(required) && required.includes(name))
    return {
      name,
      in: place,
      ...(description === undefined ? {} : { description }),
      ...(isRequired ? { required: true } : {}),
      schema: own,
    }
  })
}

function describeRouteBody(body: unknown, shared: SharedSchemas): BodyDocs {
  return { content: describeContent(body, shared) }
}

/** Fastify takes one schema for JSON, or schemas by content type in `content`. */
function describeContent(schema: unknown, shared: SharedSchemas): Readonly<Record<string, JsonObject>> {
  const { content } = isObject(schema) ? schema : {}
  if (!isObject(content)) return { [JSON_CONTENT]: toDocumentSchema(schema, shared) }
  const entries = Object.entries(content).map(([type, part]) => [
    type,
    toDocumentSchema(isObject(part) ? part['schema'] : undefined, shared),
  ])
  return Object.fromEntries(entries) as Readonly<Record<string, JsonObject>>
}

const ANY_ANSWER: AnswerDocs = { description: 'The answer of the route.', content: { [JSON_CONTENT]: {} } }

function describeRouteAnswers(
  response: unknown,
  shared: SharedSchemas,
): Readonly<Record<string, AnswerDocs>> {
  const entries = isObject(response) ? Object.entries(response) : []
  const described = entries
    .filter(([status]) => status !== 'default')
    .map(([status, schema]): readonly [string, AnswerDocs] => {
      const { description, type } = isObject(schema) ? schema : {}
      return [
        status.toUpperCase(),
        {
          description: typeof description === 'string' ? description : 'The answer of the route.',
          // An answer without a body.
          ...(type === 'null' ? {} : { content: describeContent(schema, shared) }),
        },
      ]
    })
  return described.length === 0 ? { 200: ANY_ANSWER } : Object.fromEntries(described)
}
