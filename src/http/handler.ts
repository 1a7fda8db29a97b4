// Handles the requests for one App: Fastify with its hooks, the limits and the routes. server.ts has the sockets.
import type { RequestListener, Server as HttpServer } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { App } from '../service/context/app.js'
import { computeMemoryLimit } from '../service/context/answer-limits.js'
import { countPendingHashes } from '../service/input/password-hash.js'
import type { Gauges } from '../store/engine/database.js'
import { PROTOCOLS } from './compat/axelor.js'
import type { RoutePlugin } from './ext/route-plugin.js'
import { createSchemaCompilers } from './ext/schema-compilers.js'
import { createFastify, createListener, createRequestLogger } from './fastify.js'
import type { Metrics } from './metrics/metrics.js'
import { ResponseBuffer } from './response/response-buffer.js'
import { buildCommonHeaders } from './response/headers.js'
import { createGuards, runGuards } from './route/guard.js'
import { createRequestLimits } from './route/limits.js'
import { createOverloadCheck } from './route/overload.js'
import { createHostCheck } from './route/origin.js'
import { addRoutes } from './routes.js'
import type { HttpSettings } from './settings.js'

export interface RequestHandler {
  readonly app: App
  readonly fastify: FastifyInstance
  readonly listener: RequestListener
  gauges(): Gauges
  isStopping(): boolean
  /** Answers the requests that wait for changes, so that all requests in flight end soon. */
  endWaits(): void
  close(): Promise<void>
}

export interface HandlerOptions {
  /** Fastify adds its listeners to this server. `Server.listen` starts it. */
  readonly httpServer: HttpServer
  /** Aborted during shutdown: responses then close their connections. */
  readonly stopping: AbortSignal
  readonly setupToken: string | undefined
  readonly offersDemoAccount: boolean
  /** Undefined without a metrics port. */
  readonly metrics: Metrics | undefined
  /** Runs work at the end of a turn of the event loop. */
  readonly atTurnEnd: (work: () => void) => void
  /** The plugins whose routes are served below `/ext`. */
  readonly routes: readonly RoutePlugin[]
}

export async function createHandler(
  app: App,
  settings: HttpSettings,
  { httpServer, stopping, setupToken, offersDemoAccount, metrics, atTurnEnd, routes }: HandlerOptions,
): Promise<RequestHandler> {
  const ending = new AbortController()
  const protocol = PROTOCOLS[settings.compat](app)
  const limits = createRequestLimits(app, settings)
  const schemas = routes.length > 0 ? createSchemaCompilers() : undefined
  const hooks = {
    checkHost: createHostCheck(settings),
    limits,
    logRequest: createRequestLogger(app.log),
    metrics,
    schemaCompilers: schemas?.compilers,
  }
  const schemes = ['Session', 'Bearer', ...(settings.basicAuth ? ['Basic'] : [])]
  const recordError = metrics?.recordError.bind(metrics)
  const errors = { log: app.log, protocol, schemes, basePath: settings.basePath, recordError }
  const fastify = createFastify(settings, errors, hooks, httpServer)
  const responseBuffer = new ResponseBuffer(app.staging, computeMemoryLimit(app.settings))
  const recordShed = metrics?.recordShed.bind(metrics)
  const overloadContext = { settings, log: app.log, db: app.db, recordShed, stopping, atTurnEnd }
  const overload = createOverloadCheck(fastify, overloadContext)
  fastify.decorate('commonHeaders', buildCommonHeaders(settings, stopping))
  fastify.decorate('responseBuffer', responseBuffer)
  const guards = limits.countByAccount(createGuards(app, settings))
  fastify.addHook('preHandler', runGuards([guards.recheckAfterBody]))
  const context = { app, settings, guards, protocol, limits, setupToken, offersDemoAccount, routes }
  try {
    await addRoutes(fastify, { ...context, stopping: ending.signal })
    await fastify.ready()
    schemas?.refuseInvalid()
  } catch (error) {
    // Plugins may have opened something already.
    await fastify.close()
    throw error
  }
  return {
    app,
    fastify,
    listener: createListener(fastify, app.db, overload, atTurnEnd),
    gauges: () => ({
      ...app.db.gauges(),
      ...limits.gauges(),
      hashesPending: countPendingHashes(),
      feedReaders: app.changeWaiters.size,
      stagedBytes: app.staging.bytes,
      waitingBytes: responseBuffer.bytes,
      responsesCompressing: fastify.compressor?.pending ?? 0,
    }),
    isStopping: () => stopping.aborted,
    endWaits: () => {
      ending.abort()
    },
    close: async () => {
      ending.abort()
      await fastify.close()
    },
  }
}
