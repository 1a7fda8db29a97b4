import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'

declare module 'fastify' {
  interface FastifyRequest {
    /** Arrival on the clock of `performance.now()`. */
    startMs: number
  }
}

export type RequestLogger = (request: FastifyRequest, reply: FastifyReply) => void

/** Limits the child loggers that are cached by user, route and model. */
const MAX_CACHED_LOGGERS = 500

/** Logs one line for each request. */
export function createRequestLogger(log: Logger): RequestLogger {
  // The fields of this line are fixed and hold no secret. Redaction would be the most expensive part of a read.
  const requests = log.child({}, { redact: [] })
  const loggers = new Map<string, Logger>()
  const findLogger = (request: FastifyRequest): Logger => {
    const { method, ip: address, principal } = request
    // The route pattern, not the URL: query strings stay out of the log.
    const route = request.routeOptions.url
    const { model } = (request.params ?? {}) as { model?: string }
    const { username: user, keyId: key } = principal?.user ?? {}
    const modelName = model?.slice(0, 100)
    // The client chooses the model name. It comes last so that it cannot imitate the other parts of the key.
    const cacheKey = `${method} ${String(route)} ${String(user)} ${String(key)} ${address} ${String(modelName)}`
    const found = loggers.get(cacheKey)
    if (found) return found
    const logger = requests.child({ method, route, model: modelName, user, key, address })
    if (loggers.size >= MAX_CACHED_LOGGERS) loggers.clear()
    loggers.set(cacheKey, logger)
    return logger
  }
  return (request, reply) => {
    const ms = Math.round((performance.now() - request.startMs) * 10) / 10
    findLogger(request).info({ requestId: request.id, status: reply.statusCode, ms }, 'request')
  }
}
