// The API documents: OpenAPI for the operations, JSON Schema for the records of one model.
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { describeModelDocument } from '../../formats/model-schema.js'
import type { Model } from '../../model/definition/model.js'
import { listUnknownParameters } from '../../model/query/parameters.js'
import type { App } from '../../service/context/app.js'
import { getVisibility } from '../../service/context/context.js'
import type { Principal } from '../../service/context/principal.js'
import { parseModelNames } from '../../service/log/feed.js'
import { requireKnownModel } from '../../service/access/request-checks.js'
import { JSON_TYPE, sendCacheable, type SentReply } from '../response/send.js'
import { JSON_CONTENT, LOGIN_ERRORS, type AnswerDocs, type OperationDocs } from '../route/documentation.js'
import { readRouteModel, requirePrincipal } from '../route/guard.js'
import { buildBaseUrl } from '../route/origin.js'
import {
  buildRecordRouteDefaults,
  documented,
  HTTP_METHODS,
  type Resource,
  type RouteContext,
} from '../route/resource.js'
import type { HttpSettings } from '../settings.js'
import { DocumentCache } from './document-cache.js'
import { buildDocumentRest, buildDocumentStart, createDocumentFrame, type DocumentFrame } from './document.js'
import { listUsableActions } from './model-part.js'
import type { DocumentedRoute } from './operations.js'

const MAX_NAMED_MODELS = 100
const DOCUMENT_PARAMETERS = { known: ['model'] }
const ETAG_CHARACTERS = 22

const NOT_MODIFIED: AnswerDocs = {
  description: 'The document has not changed since the answer with this ETag.',
  headers: ['ETag'],
}

function describeDocumentRoute(id: string, summary: string): Omit<OperationDocs, 'errors'> {
  return {
    id,
    summary,
    group: 'Models',
    access: 'login',
    headers: ['If-None-Match'],
    answers: {
      200: {
        description: 'The document, without an envelope.',
        content: { [JSON_CONTENT]: { type: 'object', additionalProperties: true } },
        headers: ['ETag'],
      },
      304: NOT_MODIFIED,
    },
  }
}

const OPENAPI_DOCS: OperationDocs = {
  ...describeDocumentRoute('getOpenapi', 'Get the OpenAPI document of the service'),
  description:
    'With `model`, the document has these models alone. With an empty `model`, it has the operations that belong to no model.',
  query: DOCUMENT_PARAMETERS,
  errors: [...LOGIN_ERRORS, 'unknown-model'],
}

const SCHEMA_DOCS: OperationDocs = {
  ...describeDocumentRoute('getSchema', 'Get the JSON Schema of the records of a model'),
  errors: [...LOGIN_ERRORS, 'unknown-model'],
}

/** Collects the documented routes of a server while they are registered. Call it before the first one. */
export function collectRoutes(server: FastifyInstance, { basePath }: HttpSettings): DocumentedRoute[] {
  const routes: DocumentedRoute[] = []
  server.addHook('onRoute', ({ method: methods, url, config }) => {
    const { docs, isAboutRecords = false } = config ?? {}
    if (!docs) return
    // Fastify registers the root of a base path twice, with and without a slash.
    const path = url.slice(basePath.length) || '/'
    for (const method of HTTP_METHODS.filter((each) => [methods].flat().includes(each)))
      if (!routes.some((known) => known.method === method && known.path === path))
        routes.push({ method, path, docs, isAboutRecords })
  })
  return routes
}

/** `routes` is complete when the first request arrives. */
export function createOpenapiResources(
  context: RouteContext,
  routes: readonly DocumentedRoute[],
): readonly Resource[] {
  // Programs that read these documents look at the HTTP status.
  const shared = { ...buildRecordRouteDefaults(context.guards), isAboutRecords: false }
  const { app, settings, protocol } = context
  const cache = new DocumentCache()
  let frame: DocumentFrame | undefined
  const getFrame = () =>
    (frame ??= createDocumentFrame(routes, {
      version: readVersion(),
      hasBasicAuth: settings.basicAuth,
      sendsErrorsAs200: protocol.sendsErrorsAs200,
      refusesUnknownFields: settings.compat === 'none',
    }))
  const sendOpenapi = async (request: FastifyRequest, reply: FastifyReply) => {
    const principal = requirePrincipal(request)
    const models = readModels(context, request)
    const { body: rest, digest } = await cache.get(buildKey(principal, models), () =>
      buildDocumentRest(app, principal, getFrame(), models),
    )
    const start = buildDocumentStart(buildBaseUrl(request, settings))
    return sendDocument(reply, Buffer.concat([Buffer.from(start), rest]), start + digest)
  }
  const sendSchema = async (request: FastifyRequest, reply: FastifyReply) => {
    const principal = requirePrincipal(request)
    const model = readRouteModel(app, request)
    const visibility = getVisibility(app, principal)
    const document = describeModelDocument(visibility, model, {
      id: `${buildBaseUrl(request, settings)}/ws/meta/schema/${model.name}`,
      actions: listUsableActions(principal, visibility, model),
      refusesUnknownFields: settings.compat === 'none',
    })
    const text = JSON.stringify(document)
    return sendDocument(reply, text, text)
  }
  return [
    {
      ...shared,
      path: '/ws/openapi.json',
      readsQueryFor: ['GET'],
      handlers: { GET: documented(OPENAPI_DOCS, sendOpenapi) },
    },
    {
      ...shared,
      path: '/ws/meta/schema/:model',
      handlers: { GET: documented(SCHEMA_DOCS, sendSchema) },
    },
  ]
}

/** Bodies that differ have different identities. */
function sendDocument(reply: FastifyReply, body: string | Buffer, identity: string): SentReply {
  const etag = `"${hash('sha256', identity, 'base64url').slice(0, ETAG_CHARACTERS)}"`
  return sendCacheable(reply, JSON_TYPE, body, etag)
}

/** Returns the models of the parameter `model` without repetitions; undefined for all, and none for an empty parameter. */
function readModels({ app, protocol }: RouteContext, request: FastifyRequest): readonly Model[] | undefined {
  const query = protocol.filterParameters(request.query as { readonly model?: unknown }, DOCUMENT_PARAMETERS)
  const errors = listUnknownParameters(query, DOCUMENT_PARAMETERS)
  const names = parseModelNames(query.model)
  if (names && names.length > MAX_NAMED_MODELS)
    errors.push(`model must name at most ${MAX_NAMED_MODELS} models`)
  if (errors.length > 0) throw new VersoError('bad-request', errors.join('; '))
  return names && findModels(app, requirePrincipal(request), names)
}

function findModels(app: App, principal: Principal, names: readonly string[]): readonly Model[] {
  return [...new Set(names)].sort().map((name) => requireKnownModel(app, principal, name))
}

/** Documents depend on the permissions of the user. Administrators have the same ones. */
function buildKey({ user, permissions, permissionsVersion }: Principal, models?: readonly Model[]): string {
  const names = models ? models.map(({ name }) => name).join() : '*'
  if (!permissions) return `admin ${names}`
  return `${user?.id ?? ''} ${user?.keyId ?? ''} ${permissionsVersion ?? ''} ${names}`
}

/** src/http/openapi and dist/http/openapi have the same depth. */
function readVersion(): string {
  const file = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
}
