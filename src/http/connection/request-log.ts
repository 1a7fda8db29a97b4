import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Principal } from '../../service/context/principal.js'

export interface RequestLogEntry {
  readonly requestId: string
  readonly method: string
  /** The route pattern, not the URL: query strings stay out of the log. */
  readonly route: string | undefined
  readonly model: string | undefined
  readonly status: number
  /** Arrival on the clock of `performance.now()`. */
  readonly startMs: number
  readonly principal: Principal | null
  readonly address: string | undefined
}

export function buildRequestLogEntry(request: FastifyRequest, reply: FastifyReply): RequestLogEntry {
  const { model } = (request.params ?? {}) as { model?: string }
  return {
    requestId: request.id,
    method: request.method,
    route: request.routeOptions.url,
    model,
    status: reply.statusCode,
    startMs: performance.now() - reply.elapsedTime,
    principal: request.principal,
    address: request.ip,
  }
}

export type RequestLogger = (answered: RequestLogEntry) => void

/** Limits the child loggers that are cached by user, route and model. */
const MAX_CACHED_LOGGERS = 500

/** Logs one line for each request. */
export function createRequestLogger(log: Logger): RequestLogger {
  // The fields of this line are fixed and hold no secret. Redaction would be the most expensive part of a read.
  const requests = log.child({}, { redact: [] })
  const loggers = new Map<string, Logger>()
  const findLogger = ({ method, route, model, principal, address }: RequestLogEntry): Logger => {
    const { username: user, keyId: key } = principal?.user ?? {}
    const modelName = model?.slice(0, 100)
    // The client chooses the model name. It comes last so that it cannot imitate the other parts of the key.
    const cacheKey = `${method} ${String(route)} ${String(user)} ${String(key)} ${String(address)} ${String(modelName)}`
    const found = loggers.get(cacheKey)
    if (found) return found
    const logger = requests.child({ method, route, model: modelName, user, key, address })
    if (loggers.size >= MAX_CACHED_LOGGERS) loggers.clear()
    loggers.set(cacheKey, logger)
    return logger
  }
  return (entry) => {
    const { requestId, status, startMs } = entry
    const ms = Math.round((performance.now() - startMs) * 10) / 10
    findLogger(entry).info({ requestId, status, ms }, 'request')
  }
}
