// What every answer tells browsers and caches. Made once, when the service starts: nothing is worked out for a request.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { HttpSettings } from '../settings.js'

/** No answer of the interface is a page: whatever one holds, it loads nothing, runs nothing and is shown in no frame. */
const API_CSP = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** For the pages of a web application, whose files come from the service itself. */
export const APP_CSP =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; connect-src 'self'"

/** A browser that has seen it asks by https only, for a year. Over plain http it would be ignored. */
const STRICT_TRANSPORT_SECURITY = 'max-age=31536000; includeSubDomains'

/** What helmet sends, but for what its test names. */
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

/** Whatever says who asks: the answer to one is not for another. */
const VARY_ON_CREDENTIALS = 'Cookie, Authorization, API-KEY'

export type HeaderSetter = (request: FastifyRequest, reply: FastifyReply) => void

/** What all answers over plain http have. */
export function buildHttpHeaders({ allowOrigins }: HttpSettings): Readonly<Record<string, string>> {
  return Object.freeze({
    ...SECURITY_HEADERS,
    'cache-control': 'private, no-cache',
    vary: allowOrigins.length === 0 ? VARY_ON_CREDENTIALS : `${VARY_ON_CREDENTIALS}, Origin`,
  })
}

/** Sets what all answers have. */
export function createHeaderSetter(settings: HttpSettings): HeaderSetter {
  const plain = buildHttpHeaders(settings)
  const secure = Object.freeze({ ...plain, 'strict-transport-security': STRICT_TRANSPORT_SECURITY })
  return (request, reply) => {
    void reply.header('x-request-id', request.id)
    void reply.headers(request.protocol === 'https' ? secure : plain)
  }
}

/** One more header of the request that the answer goes by. */
export function addVary(reply: FastifyReply, name: string): void {
  const before = reply.getHeader('vary')
  void reply.header('vary', before === undefined ? name : `${String(before)}, ${name}`)
}

/** For answers about passwords and sessions, which nobody keeps. */
export function setNoStore(reply: FastifyReply): void {
  void reply.header('cache-control', 'no-store')
}
