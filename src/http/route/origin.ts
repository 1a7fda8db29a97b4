import type { FastifyReply, FastifyRequest } from 'fastify'
import { isAllowedOrigin } from './guard.js'
import type { HttpSettings } from '../settings.js'

const PREFLIGHT_MAX_AGE_S = 600

/** Adds CORS headers for the origins of the setting `allowOrigins`. Returns true if it has answered the request, which was a preflight. */
export function handleCors(request: FastifyRequest, reply: FastifyReply, settings: HttpSettings): boolean {
  if (!isAllowedOrigin(request, settings)) return false
  void reply.header('access-control-allow-origin', request.headers.origin)
  void reply.header(
    'access-control-expose-headers',
    'ETag, Link, Idempotency-Replayed, Preference-Applied, Retry-After, X-Commit-Seq, X-Request-Id',
  )
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined)
    return false
  void reply
    .code(204)
    .header('access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE')
    .header(
      'access-control-allow-headers',
      'Accept, API-KEY, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer',
    )
    .header('access-control-max-age', PREFLIGHT_MAX_AGE_S)
    .send()
  return true
}
