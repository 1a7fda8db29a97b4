// Answers for a route below /ext that does not answer, so that it does not count as a request in flight for ever.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { VersoError } from '../../errors.js'

/** A route may set another limit by `handlerTimeout` of Fastify, which also ends streams. */
export const ANSWER_LIMIT_MS = 30_000

declare module 'fastify' {
  interface FastifyRequest {
    /** Runs until the answer begins. Null if the route has a limit of its own. */
    answerTimer: NodeJS.Timeout | null
  }
}

/** Limits the time until an answer begins. A stream, and a reply that the route has taken over, may take any time. */
export function limitAnswers(scope: FastifyInstance, limitMs: number): void {
  scope.decorateRequest('answerTimer', null)
  scope.addHook('onRequest', (request, reply, done) => {
    if (!request.is404 && request.routeOptions.handlerTimeout === 0) {
      const timer = setTimeout(sendLateAnswer, limitMs, reply, limitMs)
      request.answerTimer = timer
      reply.raw.once('close', () => {
        clearTimeout(timer)
      })
    }
    done()
  })
  // The body may have arrived slowly.
  scope.addHook('preHandler', ({ answerTimer }, _, done) => {
    answerTimer?.refresh()
    done()
  })
  scope.addHook('onSend', ({ answerTimer }, _, payload, done) => {
    clearTimeout(answerTimer ?? undefined)
    done(null, payload)
  })
}

function sendLateAnswer(reply: FastifyReply, limitMs: number): void {
  if (reply.sent || reply.raw.headersSent) return
  try {
    void reply.send(
      new VersoError('busy', `The route has not answered within ${limitMs / 1_000} s. It may still go on`),
    )
  } catch {
    // Fastify throws while an onError hook of the plugin does not end.
    reply.raw.destroy()
  }
}
