// Creates the HTTP server: Fastify with limits, hooks in the order in which they run, routes, and the error handler.
import { randomUUID } from 'node:crypto'
import type { Server as HttpServer } from 'node:http'
import { fastify, type FastifyInstance } from 'fastify'
import type { App } from '../service/context/app.js'
import { computeMemoryLimit } from '../service/context/answer-limits.js'
import { getDummyHash, countPendingHashes } from '../service/write/password-hash.js'
import type { Gauges } from '../store/engine/database.js'
import { ResponseBuffer } from './response/response-buffer.js'
import { PROTOCOLS } from './compat/axelor.js'
import { createBatchResource } from './records/batch.js'
import { acceptCredentials, acceptJson } from './request/bodies.js'
import { createChangesResource } from './feed/changes.js'
import { handleCors } from './route/origin.js'
import { createFileResource, createUploadResource } from './records/files.js'
import { acceptForms } from './records/form.js'
import { createGuards, createHostCheck, type HostCheck, type Guards } from './route/guard.js'
import type { Protocol } from './compat/protocol.js'
import { createExportResource } from './records/export.js'
import { createHealthResources } from './meta/health.js'
import {
  createInfoResource,
  refuseUnknownPath,
  createRootResource,
  createUnknownPathError,
} from './meta/app-info.js'
import { ConnectionTracker } from './connection/connection-tracker.js'
import { createRequestLimits, type RequestLimits } from './route/limits.js'
import { createKeyResources } from './auth/keys.js'
import { listenOnLoopbackIpv6, LOOPBACK_IPV4, LOOPBACK_IPV6 } from './connection/loopback.js'
import { createLoginResources, createLogoutResource } from './auth/login.js'
import { createOwnAccountResources } from './auth/own-account.js'
import { createMetaResources } from './meta/meta.js'
import { createRecordResources } from './records/record-routes.js'
import { sendSocketError, sendError, type ErrorContext } from './route/errors.js'
import { buildRequestLogEntry, createRequestLogger, type RequestLogger } from './connection/request-log.js'
import { createResetResource } from './auth/reset.js'
import { addResource, type Resource } from './route/resource.js'
import { createHeaderSetter, setNoStore, type HeaderSetter } from './response/security-headers.js'
import type { HttpSettings } from './settings.js'
import { createSetupResource } from './auth/setup.js'
import { shortReads } from './short-reads.js'
import { withShortWay, type FastPathParts as ShortParts, type FastPathReader } from './short-way.js'
import { shortWrites } from './short-writes.js'
import { batchPerTick, type HttpListener } from './connection/batch-per-tick.js'
import { createUserResources } from './auth/users.js'
import { createWebhookResources } from './webhooks.js'

const HTTP_SERVER_OPTIONS = {
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

export interface ServerOptions {
  /** Enables `/setup?token=…`, which creates the first administrator. */
  readonly setupToken?: string
}

export interface Server {
  /** For tests: lists routes and injects requests without a socket. */
  readonly fastify: FastifyInstance
  /** Resolves with the URLs it listens on, the one for users first. */
  listen(): Promise<string[]>
  /** Counters of pending work of requests, service and database. All are 0 while the server is idle. */
  gauges(): Gauges
  /** Finishes the requests in flight, then stops. */
  close(): Promise<void>
}

/**
 * The service over HTTP.
 *
 * @example
 * const server = await createServer(app, { ...DEFAULT_HTTP_SETTINGS, port: 0 })
 * const [url] = await server.listen()
 */
export async function createServer(
  app: App,
  settings: HttpSettings,
  options: ServerOptions = {},
): Promise<Server> {
  const stopping = new AbortController()
  const isStopping = () => stopping.signal.aborted
  await getDummyHash()
  const protocol = PROTOCOLS[settings.compat](app)
  const setHeaders = createHeaderSetter(settings)
  const limits = createRequestLimits(app, settings)
  const schemes = ['Session', 'Bearer', ...(settings.basicAuth ? ['Basic'] : [])]
  const errors = { log: app.log, protocol, schemes }
  const server = createFastify(errors, settings, setHeaders)
  const [checkHost, logRequest] = [createHostCheck(settings), createRequestLogger(app.log)]
  const responseBuffer = new ResponseBuffer(app.staging, computeMemoryLimit(app.settings))
  server.decorate('responseBuffer', responseBuffer)
  addHooks(server, settings, { setHeaders, limits, checkHost, logRequest })
  closeConnectionsOnStop(server, isStopping)
  const guards = limits.countByAccount(createGuards(app, settings))
  server.addHook('preHandler', guards.recheckAfterBody)
  const routeContext = { guards, protocol, limits, stopping: stopping.signal }
  await addRoutes(server, app, settings, routeContext, options)
  await server.ready()
  const routing: HttpListener = (request, response) => {
    server.routing(request, response)
  }
  const short = { app, settings, limits, checkHost, logRequest, errors, isStopping, responseBuffer }
  const { reader } = app.db
  const listener = batchPerTick(withShortWay(routing, short, createFastPathReaders(short)), (runBatch) => {
    if (reader.withSnapshot) reader.withSnapshot(runBatch)
    else runBatch()
  })
  server.server.removeAllListeners('request').on('request', listener)
  const connections = new ConnectionTracker(settings.maxConnections)
  connections.track(server.server)
  let ipv6Server: HttpServer | undefined
  const isLocalhost = settings.host === 'localhost'
  return {
    fastify: server,
    listen: async () => {
      await server.listen({ host: isLocalhost ? LOOPBACK_IPV4 : settings.host, port: settings.port })
      const [bound] = server.addresses().filter((address) => typeof address === 'object')
      const { address = '', port = 0 } = bound ?? {}
      if (isLocalhost)
        ipv6Server = await listenOnLoopbackIpv6(port, HTTP_SERVER_OPTIONS, listener, sendSocketError)
      if (ipv6Server) connections.track(ipv6Server)
      const hosts = [...(isLocalhost ? ['localhost'] : []), address, ...(ipv6Server ? [LOOPBACK_IPV6] : [])]
      return hosts.map(
        (host) => `http://${host.includes(':') ? `[${host}]` : host}:${port}${settings.basePath}`,
      )
    },
    gauges: () => ({
      ...app.db.gauges?.(),
      ...limits.gauges(),
      ...{ hashesPending: countPendingHashes(), feedReaders: app.changeWaiters.size },
      ...{ stagedBytes: app.staging.bytes, waitingBytes: responseBuffer.bytes },
    }),
    close: async () => {
      stopping.abort()
      limits.stop()
      await connections.drain(ipv6Server ? [server.server, ipv6Server] : [server.server])
      await server.close()
    },
  }
}

/** Only the routes convert the writes of compatible clients. */
function createFastPathReaders(short: ShortParts): readonly FastPathReader[] {
  const isContract = short.settings.compat === 'none'
  return isContract ? [shortReads(short), shortWrites(short)] : [shortReads(short)]
}

interface RouteContext {
  readonly guards: Guards
  readonly protocol: Protocol
  readonly limits: RequestLimits
  readonly stopping: AbortSignal
}

async function addRoutes(
  server: FastifyInstance,
  app: App,
  settings: HttpSettings,
  { guards, protocol, limits, stopping }: RouteContext,
  { setupToken }: ServerOptions,
): Promise<void> {
  const { basePath } = settings
  const cookiePath = basePath === '' ? '/' : basePath
  await server.register(
    async (base) => {
      addResources(base, [createRootResource(), ...createHealthResources(app, () => stopping.aborted)])
      await base.register(async (scope) => {
        acceptCredentials(scope, settings.bodyLimitBytes)
        scope.addHook('onRequest', async (_, reply) => {
          setNoStore(reply)
        })
        addResources(scope, createLoginResources(app, guards, settings, cookiePath))
        addResources(scope, [createLogoutResource(app, guards, cookiePath), createResetResource(app, guards)])
        if (setupToken !== undefined) addResources(scope, [createSetupResource(app, guards, setupToken)])
      })
      await base.register(async (scope) => {
        acceptForms(scope)
        addResources(scope, [createUploadResource(app, guards, protocol, settings)])
      })
      addResources(base, createRecordResources(app, guards, protocol, basePath))
      addResources(base, [
        createBatchResource(app, guards, protocol),
        createChangesResource({ app, guards, limits, stopping }),
      ])
      addResources(base, [
        createExportResource(app, guards, protocol),
        createFileResource(app, guards, protocol),
      ])
      addResources(base, [...createMetaResources(app, guards), createInfoResource(app, guards, settings)])
      await base.register(async (scope) => {
        // Responses about accounts may contain secrets, so no cache may store them.
        scope.addHook('onRequest', async (_, reply) => {
          setNoStore(reply)
        })
        addResources(scope, [
          ...createOwnAccountResources(app, guards, settings),
          ...createUserResources(app, guards, settings),
        ])
        addResources(scope, [...createKeyResources(app, guards), ...createWebhookResources(app, guards)])
      })
      await base.register(
        async (scope) => {
          // Unauthenticated requests to unknown paths get 401, not 404.
          scope.addHook('onRequest', guards.requireLogin)
          scope.setNotFoundHandler(refuseUnknownPath)
        },
        { prefix: '/ws' },
      )
    },
    { prefix: basePath },
  )
}

function refuseSchemas(): never {
  throw new Error('routes have no schemas: see NO_SCHEMA_COMPILERS')
}

function createFastify(
  context: ErrorContext,
  settings: HttpSettings,
  setHeaders: HeaderSetter,
): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: settings.bodyLimitBytes,
    trustProxy: settings.trustProxy === false ? false : [...settings.trustProxy],
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
    // No hook runs for a malformed path.
    frameworkErrors: (error, request, reply) => {
      setHeaders(request, reply)
      sendError(context, error, request, reply)
    },
  })
  acceptJson(server)
  server.setErrorHandler((error, request, reply) => {
    sendError(context, error, request, reply)
    return reply
  })
  server.setNotFoundHandler(refuseUnknownPath)
  // Runs after all guards and before the body is read.
  server.addHook('preParsing', ({ is404 }, _, payload, done) => {
    done(is404 ? createUnknownPathError() : null, payload)
  })
  return server
}

interface RequestHooks {
  readonly setHeaders: HeaderSetter
  readonly limits: RequestLimits
  readonly checkHost: HostCheck
  readonly logRequest: RequestLogger
}

function addHooks(
  server: FastifyInstance,
  settings: HttpSettings,
  { setHeaders, limits, checkHost, logRequest }: RequestHooks,
): void {
  server.decorateRequest('principal', null)
  server.decorateRequest('isBodyPending', false)
  server.addHook('onRequest', (request, reply, done) => {
    setHeaders(request, reply)
    try {
      checkHost(request)
      // A preflight costs as little as a rejection, so it needs no limit.
      if (handleCors(request, reply, settings)) return
      limits.check(request, reply)
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  })
  server.addHook('onResponse', (request, reply, done) => {
    logRequest(buildRequestLogEntry(request, reply))
    done()
  })
}

/** Tells keep-alive clients that the connection closes after this response. */
function closeConnectionsOnStop(server: FastifyInstance, isStopping: () => boolean): void {
  server.addHook('onSend', (_, reply, payload, done) => {
    if (isStopping()) void reply.header('connection', 'close')
    done(null, payload)
  })
}

function addResources(server: FastifyInstance, resources: readonly Resource[]): void {
  for (const resource of resources) addResource(server, resource)
}
