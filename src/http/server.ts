// One door: Fastify. Limits, hooks in the order they run, routes, and the refusal handler.
import { randomUUID } from 'node:crypto'
import type { Server as HttpServer } from 'node:http'
import { fastify, type FastifyInstance } from 'fastify'
import type { App } from '../service/context/app.js'
import { computeMemoryLimit } from '../service/context/answer-limits.js'
import { getDummyHash, countPendingHashes } from '../service/write/password-hash.js'
import type { Gauges } from '../store/engine/database.js'
import { WaitingBodies } from './answer/answer-body.js'
import { HABITS } from './compat/axelor.js'
import { batchResource } from './records/batch.js'
import { acceptCredentials, acceptJson } from './request/bodies.js'
import { changesResource } from './feed/changes.js'
import { answerPreflight } from './route/cors.js'
import { fileResource, uploadResource } from './records/files.js'
import { acceptForms } from './records/form.js'
import { makeGuards, makeHostCheck, type CheckHost, type Guards } from './route/guard.js'
import type { Habits } from './compat/protocol.js'
import { exportResource } from './records/export.js'
import { healthResources } from './meta/health.js'
import { infoResource, refuseUnknownPath, startResource, unknownPath } from './meta/info.js'
import { Connections } from './connection/connections.js'
import { makeLimits, type Limits } from './route/limits.js'
import { keyResources } from './auth/keys.js'
import { listenOnLoopback6, LOOPBACK_4, LOOPBACK_6 } from './connection/loopback.js'
import { loginResources, logoutResource } from './auth/login.js'
import { meResources } from './auth/me.js'
import { metaResources } from './meta/meta.js'
import { recordResources } from './records/records.js'
import { answerClientError, answerError, type ErrorContext } from './route/errors.js'
import { answeredRequest, makeRequestLog, type LogRequest } from './connection/request-log.js'
import { resetResource } from './auth/reset.js'
import { addResource, type Resource } from './route/resource.js'
import { makeHeaders, neverStored, type SetHeaders } from './answer/security-headers.js'
import type { HttpSettings } from './settings.js'
import { setupResource } from './auth/setup.js'
import { shortReads } from './short-reads.js'
import { withShortWay, type Parts as ShortParts, type Reader } from './short-way.js'
import { shortWrites } from './short-writes.js'
import { inTurns, type Listener } from './connection/batch-per-tick.js'
import { userResources } from './auth/users.js'
import { webhookResources } from './webhooks.js'

const HTTP_OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 5_000,
  // Node would answer without a body; see makeHostCheck.
  requireHostHeader: false,
}
/** No route has a schema. Fastify loads compilers for them at every start, unless it is given others. */
const NO_SCHEMAS = { buildValidator: refuseSchemas, buildSerializer: refuseSchemas }
/** Longer than a request line can be: what is no name and no id is for the routes to say, behind their guards. */
const MAX_PARAM_LENGTH = 16_384

export interface ServerOptions {
  /** Opens `/setup?token=…`, where the first administrator is made. */
  readonly setupToken?: string
}

export interface Server {
  /** For tests: every route, and requests without a socket. */
  readonly fastify: FastifyInstance
  /** Answers the urls it listens on, the one for people first. */
  listen(): Promise<string[]>
  /** Counters of work in progress: of requests, of the service, of the database. Each is 0 while there is nothing to do. */
  gauges(): Gauges
  /** Finishes what is in flight. */
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
  const habits = HABITS[settings.compat](app)
  const setHeaders = makeHeaders(settings)
  const limits = makeLimits(app, settings)
  const schemes = ['Session', 'Bearer', ...(settings.basicAuth ? ['Basic'] : [])]
  const errors = { log: app.log, habits, schemes }
  const server = makeFastify(errors, settings, setHeaders)
  const [checkHost, logRequest] = [makeHostCheck(settings), makeRequestLog(app.log)]
  const waitingBodies = new WaitingBodies(app.staging, computeMemoryLimit(app.settings))
  server.decorate('waitingBodies', waitingBodies)
  addHooks(server, settings, { setHeaders, limits, checkHost, logRequest })
  announceStop(server, isStopping)
  const guards = limits.counted(makeGuards(app, settings))
  server.addHook('preHandler', guards.again)
  const parts = { guards, habits, limits, stopping: stopping.signal }
  await addRoutes(server, app, settings, parts, options)
  await server.ready()
  const routing: Listener = (request, response) => {
    server.routing(request, response)
  }
  const short = { app, settings, limits, checkHost, logRequest, errors, isStopping, waitingBodies }
  const { reader } = app.db
  const listener = inTurns(withShortWay(routing, short, readersOf(short)), (work) => {
    if (reader.withSnapshot) reader.withSnapshot(work)
    else work()
  })
  server.server.removeAllListeners('request').on('request', listener)
  const connections = new Connections(settings.maxConnections)
  connections.watch(server.server)
  let other: HttpServer | undefined
  const isLocalhost = settings.host === 'localhost'
  return {
    fastify: server,
    listen: async () => {
      await server.listen({ host: isLocalhost ? LOOPBACK_4 : settings.host, port: settings.port })
      const [bound] = server.addresses().filter((address) => typeof address === 'object')
      const { address = '', port = 0 } = bound ?? {}
      if (isLocalhost) other = await listenOnLoopback6(port, HTTP_OPTIONS, listener, answerClientError)
      if (other) connections.watch(other)
      const hosts = [...(isLocalhost ? ['localhost'] : []), address, ...(other ? [LOOPBACK_6] : [])]
      return hosts.map(
        (host) => `http://${host.includes(':') ? `[${host}]` : host}:${port}${settings.basePath}`,
      )
    },
    gauges: () => ({
      ...app.db.gauges?.(),
      ...limits.gauges(),
      ...{ hashesPending: countPendingHashes(), feedReaders: app.changeWaiters.size },
      ...{ stagedBytes: app.staging.bytes, waitingBytes: waitingBodies.bytes },
    }),
    close: async () => {
      stopping.abort()
      limits.stop()
      await connections.end(other ? [server.server, other] : [server.server])
      await server.close()
    },
  }
}

/** Clients with other habits are understood by the routes alone. */
function readersOf(short: ShortParts): readonly Reader[] {
  const isContract = short.settings.compat === 'none'
  return isContract ? [shortReads(short), shortWrites(short)] : [shortReads(short)]
}

/** What routes are made of. */
interface Parts {
  readonly guards: Guards
  readonly habits: Habits
  readonly limits: Limits
  readonly stopping: AbortSignal
}

async function addRoutes(
  server: FastifyInstance,
  app: App,
  settings: HttpSettings,
  { guards, habits, limits, stopping }: Parts,
  { setupToken }: ServerOptions,
): Promise<void> {
  const { basePath } = settings
  const cookiePath = basePath === '' ? '/' : basePath
  await server.register(
    async (base) => {
      add(base, [startResource(), ...healthResources(app, () => stopping.aborted)])
      await base.register(async (scope) => {
        acceptCredentials(scope, settings.bodyLimitBytes)
        scope.addHook('onRequest', async (_, reply) => {
          neverStored(reply)
        })
        add(scope, loginResources(app, guards, settings, cookiePath))
        add(scope, [logoutResource(app, guards, cookiePath), resetResource(app, guards)])
        if (setupToken !== undefined) add(scope, [setupResource(app, guards, setupToken)])
      })
      await base.register(async (scope) => {
        acceptForms(scope)
        add(scope, [uploadResource(app, guards, habits, settings)])
      })
      add(base, recordResources(app, guards, habits, basePath))
      add(base, [batchResource(app, guards, habits), changesResource({ app, guards, limits, stopping })])
      add(base, [exportResource(app, guards, habits), fileResource(app, guards, habits)])
      add(base, [...metaResources(app, guards), infoResource(app, guards, settings)])
      await base.register(async (scope) => {
        // What is told of accounts is for the moment, and some of it is told once.
        scope.addHook('onRequest', async (_, reply) => {
          neverStored(reply)
        })
        add(scope, [...meResources(app, guards, settings), ...userResources(app, guards, settings)])
        add(scope, [...keyResources(app, guards), ...webhookResources(app, guards)])
      })
      await base.register(
        async (scope) => {
          // What is not there is 401 too, as long as nobody is logged in.
          scope.addHook('onRequest', guards.session)
          scope.setNotFoundHandler(refuseUnknownPath)
        },
        { prefix: '/ws' },
      )
    },
    { prefix: basePath },
  )
}

function refuseSchemas(): never {
  throw new Error('there are no compilers for schemas: see NO_SCHEMAS')
}

function makeFastify(context: ErrorContext, settings: HttpSettings, setHeaders: SetHeaders): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: settings.bodyLimitBytes,
    trustProxy: settings.trustProxy === false ? false : [...settings.trustProxy],
    genReqId: () => randomUUID(),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_PARAM_LENGTH },
    schemaController: { compilersFactory: NO_SCHEMAS },
    // While stopping, requests that are under way already are still answered.
    return503OnClosing: false,
    // Connections are ended by us; see connections.ts.
    forceCloseConnections: false,
    requestTimeout: HTTP_OPTIONS.requestTimeout,
    keepAliveTimeout: HTTP_OPTIONS.keepAliveTimeout,
    http: HTTP_OPTIONS,
    clientErrorHandler: answerClientError,
    // No hook runs for a path that cannot be read.
    frameworkErrors: (error, request, reply) => {
      setHeaders(request, reply)
      answerError(context, error, request, reply)
    },
  })
  acceptJson(server)
  server.setErrorHandler((error, request, reply) => {
    answerError(context, error, request, reply)
    return reply
  })
  server.setNotFoundHandler(refuseUnknownPath)
  // Behind all guards, and before anything of the body is read.
  server.addHook('preParsing', ({ is404 }, _, payload, done) => {
    done(is404 ? unknownPath() : null, payload)
  })
  return server
}

interface Hooks {
  readonly setHeaders: SetHeaders
  readonly limits: Limits
  readonly checkHost: CheckHost
  readonly logRequest: LogRequest
}

function addHooks(
  server: FastifyInstance,
  settings: HttpSettings,
  { setHeaders, limits, checkHost, logRequest }: Hooks,
): void {
  server.decorateRequest('caller', null)
  server.decorateRequest('isAwaited', false)
  server.addHook('onRequest', (request, reply, done) => {
    setHeaders(request, reply)
    try {
      checkHost(request)
      // A preflight costs no more than a refusal.
      if (answerPreflight(request, reply, settings)) return
      limits.check(request, reply)
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  })
  server.addHook('onResponse', (request, reply, done) => {
    logRequest(answeredRequest(request, reply))
    done()
  })
}

/** Whoever keeps a connection alive is told that its last answer is the last. */
function announceStop(server: FastifyInstance, isStopping: () => boolean): void {
  server.addHook('onSend', (_, reply, payload, done) => {
    if (isStopping()) void reply.header('connection', 'close')
    done(null, payload)
  })
}

function add(server: FastifyInstance, resources: readonly Resource[]): void {
  for (const resource of resources) addResource(server, resource)
}
