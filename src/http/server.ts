// Creates the HTTP server: its sockets, and the handler that answers their requests. fastify.ts has its options and hooks, routes.ts its
// routes.
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { App } from '../service/context/app.js'
import { getDummyHash } from '../service/input/password-hash.js'
import type { Gauges } from '../store/engine/database.js'
import { ConnectionTracker } from './connection/connection-tracker.js'
import { listenOnLoopbackIpv6, LOOPBACK_IPV4, LOOPBACK_IPV6 } from './connection/loopback.js'
import { RequestGate } from './connection/request-gate.js'
import type { RoutePlugin } from './ext/route-plugin.js'
import { BACKLOG, createHttpServer } from './fastify.js'
import { createHandler, type RequestHandler } from './handler.js'
import type { Metrics } from './metrics/metrics.js'
import { createBusyResponder } from './route/errors.js'
import { sendSocketError } from './route/socket-errors.js'
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from './settings.js'

/** A client may send its request or read its response slowly. Another App takes over after this time nevertheless. */
const MAX_ANSWER_MS = 5_000
/** After a drain, the listener closes when no client has connected for this long. A client whose request is held does not connect again. */
const QUIET_MS = 25
/** Clients that are answered connect again, so the requests in flight at the end of a drain have this much time to be answered before that. */
const MAX_LAST_ANSWERS_MS = 300
/** After a drain, a request on an idle connection that was sent before the listener closed has this much time to arrive. */
const MAX_IDLE_GRACE_MS = 500

export interface ServerOptions {
  /** Enables `/setup?token=…`, which creates the first administrator. */
  readonly setupToken?: string
  /**
   * Shows the account of the demo to clients that are not logged in, while it has its public password. Works only in demo mode, and only if
   * this computer alone can reach the service.
   */
  readonly offersDemoAccount?: boolean
  /** Counts requests, and reads the state of the App that is served. */
  readonly metrics?: Metrics | undefined
  /** Fastify plugins whose routes are served below `/ext`. Every route names its `access`. */
  readonly routes?: readonly RoutePlugin[]
}

export interface Server {
  /** For tests: lists routes and injects requests without a socket. */
  readonly fastify: FastifyInstance
  /** Resolves with the URLs it listens on, the one for users first. */
  listen(): Promise<string[]>
  /**
   * Serves another App on the same sockets. Waits until the requests in flight are answered, opens the other App, and passes requests that
   * arrived in between to it. If it cannot be opened, the current App is served further. After `maxAnswerMs` it opens the other App although
   * requests are in flight; the current App answers them. The routes stay the same if it names no others.
   */
  replaceApp<T extends { readonly app: App; readonly routes?: readonly RoutePlugin[] }>(
    open: () => Promise<T>,
    maxAnswerMs?: number,
  ): Promise<ReplacedApp<T>>
  /** Counters of pending work of requests, service and database. All are 0 while the server is idle. */
  gauges(): Gauges
  /** Answers requests for the time of the drain, refuses new connections, finishes the requests in flight, then stops. */
  close(): Promise<void>
}

export interface ReplacedApp<T> {
  readonly opened: T
  /** Resolves when the last request to the former App is answered, so that it can be closed. */
  readonly answered: Promise<void>
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
  { setupToken, offersDemoAccount = false, metrics, routes: firstRoutes = [] }: ServerOptions = {},
): Promise<Server> {
  const settings: HttpSettings = { ...DEFAULT_HTTP_SETTINGS, ...chosen }
  const stopping = new AbortController()
  await getDummyHash()
  const httpServer = createHttpServer()
  const connections = new ConnectionTracker(settings.maxConnections)
  const atTurnEnd = connections.atTurnEnd.bind(connections)
  const handlerOptions = {
    httpServer,
    stopping: stopping.signal,
    atTurnEnd,
    setupToken,
    offersDemoAccount,
    metrics,
  }
  let routes = firstRoutes
  let handler = await createHandler(app, settings, { ...handlerOptions, routes })
  metrics?.serve(handler)
  const refuse = createBusyResponder('replaced')
  const gate = new RequestGate(handler.listener, (response) => {
    refuse(response, ['connection', 'close'])
  })
  gate.add(httpServer)
  connections.track(httpServer)
  let ipv6Server: HttpServer | undefined
  const isLocalhost = settings.host === 'localhost'
  const handleOrClose = async (next: App, nextRoutes: readonly RoutePlugin[]) =>
    createHandler(next, settings, { ...handlerOptions, routes: nextRoutes }).catch(async (error: unknown) => {
      await next.close()
      throw error
    })
  const passTo = (next: RequestHandler) => {
    handler = next
    metrics?.serve(next)
    gate.open(next.listener)
  }
  return {
    get fastify() {
      return handler.fastify
    },
    listen: async () => {
      httpServer.listen({
        host: isLocalhost ? LOOPBACK_IPV4 : settings.host,
        port: settings.port,
        backlog: BACKLOG,
      })
      await once(httpServer, 'listening')
      const { address, port } = httpServer.address() as AddressInfo
      if (isLocalhost) {
        const second = createHttpServer().on('clientError', sendSocketError)
        if (await listenOnLoopbackIpv6(second, port, BACKLOG)) ipv6Server = second
      }
      if (ipv6Server) {
        gate.add(ipv6Server)
        connections.track(ipv6Server)
      }
      const hosts = [...(isLocalhost ? ['localhost'] : []), address, ...(ipv6Server ? [LOOPBACK_IPV6] : [])]
      return hosts.map(
        (host) => `http://${host.includes(':') ? `[${host}]` : host}:${port}${settings.basePath}`,
      )
    },
    replaceApp: async (open, maxAnswerMs = MAX_ANSWER_MS) => {
      const former = handler
      gate.close()
      const requestsEnded = connections.separate()
      former.endWaits()
      try {
        await waitAtMost(requestsEnded, maxAnswerMs)
        const opened = await open()
        const nextRoutes = opened.routes ?? routes
        passTo(await handleOrClose(opened.app, nextRoutes))
        routes = nextRoutes
        return { opened, answered: requestsEnded.then(() => former.close()) }
      } catch (error) {
        // The former handler ends every wait, so the App gets another one.
        passTo(await createHandler(former.app, settings, { ...handlerOptions, routes }))
        void requestsEnded.then(() => former.close())
        throw error
      }
    },
    gauges: () => handler.gauges(),
    close: async () => {
      // From now on responses close their connections, and `/readyz` is 503.
      stopping.abort()
      const isDraining = settings.drainMs > 0
      if (isDraining) await sleep(settings.drainMs)
      // Answered clients would connect again, so requests wait while the last connections are accepted.
      gate.close()
      if (isDraining) await waitAtMost(connections.separate(), MAX_LAST_ANSWERS_MS)
      const listeners = ipv6Server ? [httpServer, ipv6Server] : [httpServer]
      const closedAtMs = await connections.stopListening(listeners, isDraining ? QUIET_MS : 0)
      gate.open(handler.listener)
      app.log.info({ closedAtMs }, 'stopped listening')
      // Not earlier: a client that waits for changes connects again at once, and must not reach this node again.
      handler.endWaits()
      await connections.drain(Math.min(settings.drainMs, MAX_IDLE_GRACE_MS))
      await handler.close()
      // Stops the timers of the servers, which have stopped listening already.
      httpServer.close()
      ipv6Server?.close()
    },
  }
}

async function waitAtMost(work: Promise<void>, ms: number): Promise<void> {
  const timer = new AbortController()
  await Promise.race([work, sleep(ms, undefined, { signal: timer.signal }).catch(() => undefined)])
  timer.abort()
}
