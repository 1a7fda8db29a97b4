// Headers for browsers and caches on every response. They are built once, when the service starts.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { HttpSettings } from '../settings.js'

/** API responses are no pages: a browser that shows one must load nothing, run nothing and not show it in a frame. */
const API_CSP = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** For the pages of a web application that this service serves. */
export const APP_CSP =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; connect-src 'self'"

/** Tells browsers to use https only, for a year. Browsers ignore the header over plain http. */
const STRICT_TRANSPORT_SECURITY = 'max-age=31536000; includeSubDomains'

/** The defaults of the package helmet, except for the differences that the test of these headers lists. */
export const SECURITY_HEADERS = Object.freeze({
  'content-security-policy': API_CSP,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'origin-agent-cluster': '?1',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'SAMEORIGIN',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
})

/** Every header that identifies the user: a cache must not share responses between users. */
const VARY_ON_CREDENTIALS = 'Cookie, Authorization, API-KEY'

export type HeaderSetter = (request: FastifyRequest, reply: FastifyReply) => void

/** The headers of every response over plain http. */
export function buildHttpHeaders({ allowOrigins }: HttpSettings): Readonly<Record<string, string>> {
  return Object.freeze({
    ...SECURITY_HEADERS,
    'cache-control': 'private, no-cache',
    vary: allowOrigins.length === 0 ? VARY_ON_CREDENTIALS : `${VARY_ON_CREDENTIALS}, Origin`,
  })
}

export function createHeaderSetter(settings: HttpSettings): HeaderSetter {
  const plain = buildHttpHeaders(settings)
  const secure = Object.freeze({ ...plain, 'strict-transport-security': STRICT_TRANSPORT_SECURITY })
  return (request, reply) => {
    void reply.header('x-request-id', request.id)
    void reply.headers(request.protocol === 'https' ? secure : plain)
  }
}

/** Adds a request header on which the response depends to `Vary`. */
export function addVary(reply: FastifyReply, name: string): void {
  const before = reply.getHeader('vary')
  void reply.header('vary', before === undefined ? name : `${String(before)}, ${name}`)
}

/** For responses about passwords and sessions: no cache may store them. */
export function setNoStore(reply: FastifyReply): void {
  void reply.header('cache-control', 'no-store')
}
