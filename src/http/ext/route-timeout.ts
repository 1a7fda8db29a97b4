// Answers for a route below /ext that does not answer, so that it does not count as a request in flight for ever.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { VersoError } from '../../errors.js'

/** A route may set another limit by `handlerTimeout` of Fastify, which also ends streams. */
export const ROUTE_TIMEOUT_MS = 30_000

declare module 'fastify' {
  interface FastifyRequest {
    /** Runs until the answer begins. Null if the route has a limit of its own. */
    routeTimer: NodeJS.Timeout | null
  }
}

/** Limits the time until an answer begins. A stream, and a reply that the route has taken over, may take any time. */
export function addRouteTimeout(scope: FastifyInstance, limitMs: number): void {
  scope.decorateRequest('routeTimer', null)
  scope.addHook('onRequest', (request, reply, done) => {
    if (!request.is404 && request.routeOptions.handlerTimeout === 0) {
      const timer = setTimeout(sendTimeout, limitMs, reply, limitMs)
      request.routeTimer = timer
      reply.raw.once('close', () => {
        clearTimeout(timer)
      })
    }
    done()
  })
  // The body may have arrived slowly.
  scope.addHook('preHandler', ({ routeTimer }, _, done) => {
    routeTimer?.refresh()
    done()
  })
  scope.addHook('onSend', ({ routeTimer }, _, payload, done) => {
    clearTimeout(routeTimer ?? undefined)
    done(null, payload)
  })
}

function sendTimeout(reply: FastifyReply, limitMs: number): void {
  if (reply.sent || reply.raw.headersSent) return
  try {
    void reply.send(
      new VersoError(
        'busy',
        `The route did not answer within ${limitMs / 1_000} s. It is unknown whether it has changed anything`,
        { retryAfterS: 5 },
      ),
    )
  } catch {
    // Fastify throws while an onError hook of the plugin does not end.
    reply.raw.destroy()
  }
}
