// Refuses requests of an overloaded node before they are routed: a refusal must cost much less than a response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Database } from '../../store/engine/database.js'
import { LoadShedder } from '../connection/load-shedder.js'
import { QueueLimit } from '../../store/engine/queue-limit.js'
import type { HttpSettings } from '../settings.js'
import { createBusyResponder } from './errors.js'

const LOG_INTERVAL_MS = 1_000
const READ_PATH = /\/(search|fetch|verify|export)$/

export interface OverloadCheck {
  /** Call it when a request arrives. Returns true if it has refused the request. */
  readonly refuses: (request: IncomingMessage, response: ServerResponse) => boolean
}

export interface OverloadContext {
  readonly settings: HttpSettings
  readonly log: Logger
  readonly db: Database
  /** Counts a refusal. Undefined without a metrics port. */
  readonly recordShed: (() => void) | undefined
  readonly stopping: AbortSignal
  readonly atTurnEnd: (work: () => void) => void
}

/** Call it before routes are added: it reads from them which ones have no limit. Returns undefined without a maximum delay. */
export function createOverloadCheck(
  server: FastifyInstance,
  { settings, log, db, recordShed, stopping, atTurnEnd }: OverloadContext,
): OverloadCheck | undefined {
  const { maxEventLoopDelayMs, allowOrigins } = settings
  if (maxEventLoopDelayMs === 0) return undefined
  const shedder = new LoadShedder(maxEventLoopDelayMs)
  const queues = { reads: new QueueLimit(maxEventLoopDelayMs), writes: new QueueLimit(maxEventLoopDelayMs) }
  const exemptPaths = new Set<string>()
  server.addHook('onRoute', ({ url, config }) => {
    if (config?.isExemptFromLimits) exemptPaths.add(url)
  })
  const respond = createBusyResponder('overloaded')
  const report = createRefusalReport(log)
  const refuse = (request: IncomingMessage, response: ServerResponse) => {
    const fromMs = performance.now()
    const { origin } = request.headers
    respond(response, [
      ...(stopping.aborted ? ['connection', 'close'] : []),
      // Otherwise the page sees a network error instead of the status.
      ...(origin !== undefined && allowOrigins.includes(origin) ? listCorsHeaders(origin) : []),
    ])
    shedder.addRefusalTime(performance.now() - fromMs)
    recordShed?.()
    report()
  }
  let isScheduled = false
  let turn = 0
  /** The last turn in which a request of the connection was refused. */
  const refusedIn = new WeakMap<Socket, number>()
  let late: Parameters<typeof refuse>[] = []
  /** Before the requests of a turn: the last turn may have been long ago. */
  const measureQueues = () => {
    const { waiting } = db
    if (!waiting) return
    const nowMs = performance.now()
    queues.reads.startTurn(waiting.reads, nowMs)
    queues.writes.startTurn(waiting.writes, nowMs)
  }
  const endTurn = () => {
    isScheduled = false
    turn++
    // A client that has left in the meantime gets no response.
    for (const [request, response] of late) if (!response.destroyed) refuse(request, response)
    late = []
    shedder.startTurn()
  }
  return {
    refuses: (request, response) => {
      if (!isScheduled) {
        isScheduled = true
        measureQueues()
        atTurnEnd(endTurn)
      }
      const path = readUrlPath(request)
      if (exemptPaths.has(path)) return false
      const queue = isRead(request.method, path) ? queues.reads : queues.writes
      if (queue.hasRoom() && shedder.accepts()) {
        queue.add()
        return false
      }
      // A request that is refused at once costs less than one that waits for the end of the turn, because it does not survive a garbage
      // collection. But its client may send the next one in the same turn, and the turn must end.
      const { socket } = request
      if (refusedIn.get(socket) === turn) late.push([request, response])
      else {
        refusedIn.set(socket, turn)
        refuse(request, response)
      }
      return true
    },
  }
}

/** A POST may be a search or a write. The names of their paths end differently. */
function isRead(method: string | undefined, path: string): boolean {
  return method === 'GET' || method === 'HEAD' || (method === 'POST' && READ_PATH.test(path))
}

function readUrlPath({ url = '' }: IncomingMessage): string {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

function listCorsHeaders(origin: string): string[] {
  return [
    ...['access-control-allow-origin', origin],
    ...['access-control-expose-headers', 'Retry-After', 'vary', 'Origin'],
  ]
}

/** Logs one line a second while requests are refused: a line for each would be a part of the load. */
function createRefusalReport(log: Logger): () => void {
  let refused = 0
  return () => {
    if (refused++ > 0) return
    setTimeout(() => {
      log.warn({ refused, seconds: LOG_INTERVAL_MS / 1_000 }, 'overloaded: requests were refused with 503')
      refused = 0
    }, LOG_INTERVAL_MS).unref()
  }
}
