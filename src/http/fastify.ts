// Every request passes through these functions, in this order: a batch per tick, Fastify, the hooks before its route, the request log.
import { randomUUID } from 'node:crypto'
import {
  createServer as createNodeServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from 'node:http'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { VersoError } from '../errors.js'
import type { Database } from '../store/engine/database.js'
import type { SchemaCompilers } from './ext/schema-compilers.js'
import { acceptJson } from './request/bodies.js'
import { Compressor } from './response/compressor.js'
import type { Metrics } from './metrics/metrics.js'
import { IndexedRequest, readRequestId, readTraceId } from './request/headers.js'
import { refuseUnknownPaths, sendError, type ErrorContext } from './route/errors.js'
import type { RequestLimits } from './route/limits.js'
import type { OverloadCheck } from './route/overload.js'
import { createProxyTrust, handleCors, type HostCheck } from './route/origin.js'
import { sendSocketError } from './route/socket-errors.js'
import type { HttpSettings } from './settings.js'

/**
 * How many connections wait while the event loop is busy. The kernel drops others without a word, and their clients try again after 1, 3 and 7 s.
 * It may allow fewer: `net.core.somaxconn`.
 */
export const BACKLOG = 4_096

const HTTP_SERVER_OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 5_000,
  // Node would answer without a body. `createHostCheck` checks the header instead.
  requireHostHeader: false,
}
/** No route of the service has a schema. These stubs keep Fastify from loading its schema compilers at every start. */
const NO_SCHEMA_COMPILERS = { buildValidator: refuseSchemas, buildSerializer: refuseSchemas }
/** Longer than a request line, so that the handlers report bad names and ids after the guards have run. */
const MAX_PARAM_CHARACTERS = 16_384

declare module 'fastify' {
  interface FastifyRequest {
    /** Arrival on the clock of `performance.now()`. */
    startMs: number
  }
}

export interface RequestHooks {
  readonly checkHost: HostCheck
  readonly limits: RequestLimits
  readonly logRequest: RequestLogger
  /** Undefined without a metrics port. */
  readonly metrics?: Metrics | undefined
  /** Present if routes may have schemas. */
  readonly schemaCompilers?: SchemaCompilers | undefined
}

/** Creates the server whose sockets outlive the handlers of their requests. */
export function createHttpServer(): Server {
  return createNodeServer({ ...HTTP_SERVER_OPTIONS, IncomingMessage: IndexedRequest })
}

export function createFastify(
  settings: HttpSettings,
  errors: ErrorContext,
  hooks: RequestHooks,
  httpServer: Server,
): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: settings.bodyLimitBytes,
    trustProxy: settings.trustProxy === false ? false : createProxyTrust(settings.trustProxy),
    genReqId: (request: IncomingMessage) => readRequestId(request) ?? randomUUID(),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_PARAM_CHARACTERS },
    schemaController: { compilersFactory: hooks.schemaCompilers ?? NO_SCHEMA_COMPILERS },
    // Requests in flight are still answered during shutdown.
    return503OnClosing: false,
    // `ConnectionTracker` closes connections.
    forceCloseConnections: false,
    serverFactory: () => httpServer,
    // No hook runs for a malformed path, and its reply is not decorated.
    frameworkErrors: (error, request, reply) => {
      reply.replacedHeaders = null
      reply.ownHeaders = null
      sendError(errors, error, request, reply)
    },
  })
  // Fastify adds its own listener, and each handler would add another.
  httpServer.removeAllListeners('clientError').on('clientError', sendSocketError)
  acceptJson(server)
  server.setErrorHandler((error, request, reply) => {
    sendError(errors, error, request, reply)
  })
  // In a scope of its own, so that its hook runs for unknown paths only.
  void server.register(async (scope) => {
    refuseUnknownPaths(scope, settings.basePath)
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
  { limits, checkHost, logRequest, metrics }: RequestHooks,
): void {
  server.decorateRequest('startMs', 0)
  server.decorateRequest('principal', null)
  server.decorateRequest('isBodyPending', false)
  server.decorateReply('replacedHeaders', null)
  server.decorateReply('ownHeaders', null)
  server.decorate('compressor', settings.compression ? new Compressor() : null)
  const admit = metrics ? recordShed(limits.admit, metrics) : limits.admit
  server.addHook('onRequest', (request, reply, done) => {
    request.startMs = performance.now()
    // `ConnectionTracker` emits `close` for the pipelined responses that Node does not close.
    reply.raw.on('close', () => {
      limits.release(reply)
      metrics?.recordResponse(request, reply)
      if (reply.raw.writableFinished) logRequest(request, reply)
    })
    try {
      checkHost(request)
      // A preflight costs as little as a rejection, so it needs no limit.
      if (handleCors(request, reply, settings)) return
      admit(request, reply)
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  })
}

function recordShed(admit: RequestLimits['admit'], metrics: Metrics): RequestLimits['admit'] {
  return (request, reply) => {
    try {
      admit(request, reply)
    } catch (error) {
      if (error instanceof VersoError && error.kind === 'busy') metrics.recordShed()
      throw error
    }
  }
}

/** On SQLite the reads of a batch share one snapshot. */
export function createListener(
  server: FastifyInstance,
  { reader }: Database,
  overload: OverloadCheck | undefined,
  atTurnEnd: (work: () => void) => void,
): RequestListener {
  const route: RequestListener = (request, response) => {
    server.routing(request, response)
  }
  const withSnapshot = (runBatch: () => void) => {
    reader.withSnapshot(runBatch)
  }
  const batch = batchPerTick(route, withSnapshot, atTurnEnd)
  if (!overload) return batch
  return (request, response) => {
    if (!overload.refuses(request, response)) batch(request, response)
  }
}

/**
 * Collects the requests that arrive until the end of a turn of the event loop, and handles them inside one snapshot. The batch shares warm
 * processor caches. The snapshot begins after every request of the batch has arrived, so none of them reads stale data.
 */
export function batchPerTick(
  listener: RequestListener,
  withSnapshot: (work: () => void) => void,
  atTurnEnd: (work: () => void) => void,
): RequestListener {
  let pending: Parameters<RequestListener>[] = []
  const runBatch = () => {
    const batch = pending
    pending = []
    withSnapshot(() => {
      for (const [request, response] of batch) listener(request, response)
    })
  }
  return (request, response) => {
    if (pending.push([request, response]) === 1) atTurnEnd(runBatch)
  }
}

export type RequestLogger = (request: FastifyRequest, reply: FastifyReply) => void

/** Limits the cached child loggers. Clients choose parts of their keys. */
const MAX_CACHED_LOGGERS = 500

/** Logs one line for each request. */
export function createRequestLogger(log: Logger): RequestLogger {
  // The fields of this line are fixed and hold no secret. Redaction would be the most expensive part of a read.
  const requests = log.child({}, { redact: [] })
  const loggers = new Map<string, Logger>()
  const findLogger = (request: FastifyRequest): Logger => {
    const { method, principal, socket, headers } = request
    // The route pattern, not the URL: query strings stay out of the log.
    const route = request.routeOptions.url
    const { model } = (request.params ?? {}) as { model?: string }
    const { username: user, keyId: key } = principal?.user ?? {}
    const modelName = model?.slice(0, 100)
    const source = `${String(socket.remoteAddress)} ${String(headers['x-forwarded-for'] ?? '')}`
    // No header has a line break, so a client that chooses its header and the model name cannot imitate the key of another request.
    const cacheKey = `${method} ${route ?? ''} ${user ?? ''} ${key ?? ''} ${source}\n${modelName ?? ''}`
    const found = loggers.get(cacheKey)
    if (found) return found
    const logger = requests.child({ method, route, model: modelName, user, key, address: request.ip })
    if (loggers.size >= MAX_CACHED_LOGGERS) loggers.clear()
    loggers.set(cacheKey, logger)
    return logger
  }
  return (request, reply) => {
    const ms = Math.round((performance.now() - request.startMs) * 10) / 10
    const facts = { requestId: request.id, traceId: readTraceId(request), status: reply.statusCode, ms }
    findLogger(request).info(facts, 'request')
  }
}
