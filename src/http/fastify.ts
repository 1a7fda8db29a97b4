// Creates the Fastify instance: its options, and the hooks of every request in the order in which they run.
import { randomUUID } from 'node:crypto'
import { fastify, type FastifyInstance } from 'fastify'
import type { RequestLogger } from './connection/request-log.js'
import { createProxyTrust } from './connection/proxy-trust.js'
import { acceptJson } from './request/bodies.js'
import { refuseUnknownPaths, sendError, sendSocketError, type ErrorContext } from './route/errors.js'
import type { RequestLimits } from './route/limits.js'
import { handleCors, type HostCheck } from './route/origin.js'
import type { HttpSettings } from './settings.js'

export const HTTP_SERVER_OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 5_000,
  // Node would answer without a body. `createHostCheck` checks the header instead.
  requireHostHeader: false,
}
/** No route has a schema. These stubs keep Fastify from loading its schema compilers at every start. */
const NO_SCHEMA_COMPILERS = { buildValidator: refuseSchemas, buildSerializer: refuseSchemas }
/** Longer than a request line, so that the handlers report bad names and ids after the guards have run. */
const MAX_PARAM_CHARACTERS = 16_384

export interface RequestHooks {
  readonly checkHost: HostCheck
  readonly limits: RequestLimits
  readonly logRequest: RequestLogger
}

export function createFastify(
  settings: HttpSettings,
  errors: ErrorContext,
  hooks: RequestHooks,
): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: settings.bodyLimitBytes,
    trustProxy: settings.trustProxy === false ? false : createProxyTrust(settings.trustProxy),
    genReqId: () => randomUUID(),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_PARAM_CHARACTERS },
    schemaController: { compilersFactory: NO_SCHEMA_COMPILERS },
    // Requests in flight are still answered during shutdown.
    return503OnClosing: false,
    // `ConnectionTracker` closes connections.
    forceCloseConnections: false,
    requestTimeout: HTTP_SERVER_OPTIONS.requestTimeout,
    keepAliveTimeout: HTTP_SERVER_OPTIONS.keepAliveTimeout,
    http: HTTP_SERVER_OPTIONS,
    clientErrorHandler: sendSocketError,
    // No hook runs for a malformed path, and its reply is not decorated.
    frameworkErrors: (error, request, reply) => {
      reply.replacedHeaders = null
      reply.ownHeaders = null
      sendError(errors, error, request, reply)
    },
  })
  acceptJson(server)
  server.setErrorHandler((error, request, reply) => {
    sendError(errors, error, request, reply)
  })
  // In a scope of its own, so that its hook runs for unknown paths only.
  void server.register(async (scope) => {
    refuseUnknownPaths(scope)
  })
  addHooks(server, settings, hooks)
  return server
}

function refuseSchemas(): never {
  throw new Error('routes have no schemas: see NO_SCHEMA_COMPILERS')
}

function addHooks(
  server: FastifyInstance,
  settings: HttpSettings,
  { limits, checkHost, logRequest }: RequestHooks,
): void {
  server.decorateRequest('startMs', 0)
  server.decorateRequest('principal', null)
  server.decorateRequest('isBodyPending', false)
  server.decorateReply('replacedHeaders', null)
  server.decorateReply('ownHeaders', null)
  server.addHook('onRequest', (request, reply, done) => {
    request.startMs = performance.now()
    // `ConnectionTracker` emits `close` for the pipelined responses that Node does not close.
    reply.raw.on('close', () => {
      limits.release(reply)
      if (reply.raw.writableFinished) logRequest(request, reply)
    })
    try {
      checkHost(request)
      // A preflight costs as little as a rejection, so it needs no limit.
      if (handleCors(request, reply, settings)) return
      limits.admit(request, reply)
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  })
}
