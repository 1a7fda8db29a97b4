// Creates the HTTP server. fastify.ts has its options and hooks, routes.ts its routes.
import type { Server as HttpServer } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { App } from '../service/context/app.js'
import { computeMemoryLimit } from '../service/context/answer-limits.js'
import { getDummyHash, countPendingHashes } from '../service/input/password-hash.js'
import type { Gauges } from '../store/engine/database.js'
import { PROTOCOLS } from './compat/axelor.js'
import { ConnectionTracker } from './connection/connection-tracker.js'
import { listenOnLoopbackIpv6, LOOPBACK_IPV4, LOOPBACK_IPV6 } from './connection/loopback.js'
import { createFastify, createListener, createRequestLogger, HTTP_SERVER_OPTIONS } from './fastify.js'
import { ResponseBuffer } from './response/response-buffer.js'
import { buildCommonHeaders } from './response/headers.js'
import { sendSocketError } from './route/errors.js'
import { createGuards, runGuards } from './route/guard.js'
import { createRequestLimits } from './route/limits.js'
import { createHostCheck } from './route/origin.js'
import { addRoutes } from './routes.js'
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from './settings.js'

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
 * Creates the server; `listen` starts it.
 *
 * @example
 * const server = await createServer(app, { port: 0 })
 * const [url] = await server.listen()
 */
export async function createServer(
  app: App,
  chosen: Partial<HttpSettings> = {},
  { setupToken }: ServerOptions = {},
): Promise<Server> {
  const settings: HttpSettings = { ...DEFAULT_HTTP_SETTINGS, ...chosen }
  const stopping = new AbortController()
  await getDummyHash()
  const protocol = PROTOCOLS[settings.compat](app)
  const limits = createRequestLimits(app, settings)
  const hooks = {
    checkHost: createHostCheck(settings),
    limits,
    logRequest: createRequestLogger(app.log),
  }
  const schemes = ['Session', 'Bearer', ...(settings.basicAuth ? ['Basic'] : [])]
  const errors = { log: app.log, protocol, schemes }
  const server = createFastify(settings, errors, hooks)
  const responseBuffer = new ResponseBuffer(app.staging, computeMemoryLimit(app.settings))
  server.decorate('commonHeaders', buildCommonHeaders(settings, stopping.signal))
  server.decorate('responseBuffer', responseBuffer)
  const guards = limits.countByAccount(createGuards(app, settings))
  server.addHook('preHandler', runGuards([guards.recheckAfterBody]))
  await addRoutes(server, {
    app,
    settings,
    guards,
    protocol,
    limits,
    stopping: stopping.signal,
    setupToken,
  })
  await server.ready()
  const listener = createListener(server, app.db)
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
      ...app.db.gauges(),
      ...limits.gauges(),
      hashesPending: countPendingHashes(),
      feedReaders: app.changeWaiters.size,
      stagedBytes: app.staging.bytes,
      waitingBytes: responseBuffer.bytes,
    }),
    close: async () => {
      stopping.abort()
      limits.stop()
      await connections.drain(ipv6Server ? [server.server, ipv6Server] : [server.server])
      await server.close()
    },
  }
}
