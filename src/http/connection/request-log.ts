import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Principal } from '../../service/context/principal.js'

export interface AnsweredRequest {
  readonly requestId: string
  readonly method: string
  /** The route, not the address: what stands behind `?` stays out of the log. */
  readonly route: string | undefined
  readonly model: string | undefined
  readonly status: number
  /** When it arrived, as `performance.now()` told it. */
  readonly startMs: number
  readonly caller: Principal | null
  readonly address: string | undefined
}

export function answeredRequest(request: FastifyRequest, reply: FastifyReply): AnsweredRequest {
  const { model } = (request.params ?? {}) as { model?: string }
  return {
    requestId: request.id,
    method: request.method,
    route: request.routeOptions.url,
    model,
    status: reply.statusCode,
    startMs: performance.now() - reply.elapsedTime,
    caller: request.caller,
    address: request.ip,
  }
}

export type LogRequest = (answered: AnsweredRequest) => void

/** Whoever asks, and for what, is printed once for so many of them. */
const MAX_KNOWN = 500

/** One line for each request. */
export function makeRequestLog(log: Logger): LogRequest {
  // The fields of this line are fixed and hold no secret: looking for one in each would be the dearest part of a read.
  const requests = log.child({}, { redact: [] })
  const known = new Map<string, Logger>()
  const loggerOf = ({ method, route, model, caller, address }: AnsweredRequest): Logger => {
    const { username: user, keyId: key } = caller?.user ?? {}
    const named = model?.slice(0, 100)
    // What a client may have made up comes last, so that it is nobody else's line.
    const who = `${method} ${String(route)} ${String(user)} ${String(key)} ${String(address)} ${String(named)}`
    const found = known.get(who)
    if (found) return found
    const logger = requests.child({ method, route, model: named, user, key, address })
    if (known.size >= MAX_KNOWN) known.clear()
    known.set(who, logger)
    return logger
  }
  return (answered) => {
    const { requestId, status, startMs } = answered
    const ms = Math.round((performance.now() - startMs) * 10) / 10
    loggerOf(answered).info({ requestId, status, ms }, 'request')
  }
}
