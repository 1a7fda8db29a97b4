// The headers of every response. They are built once, when the service starts; send.ts adds those of one response.
import type { HttpSettings } from '../settings.js'

/** An API response is not a page: a browser that shows one must load nothing, run nothing and not show it in a frame. */
const API_CSP = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

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

/** Names and values alternate. Node writes such a list fastest. */
export type HeaderList = readonly string[]

/** The headers of every response. */
export interface CommonHeaders {
  readonly http: HeaderList
  readonly https: HeaderList
  /** Aborted during shutdown: a response then tells the client that its connection closes. */
  readonly stopping: AbortSignal
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly commonHeaders: CommonHeaders
  }
}

export function buildCommonHeaders(
  { allowOrigins, compression }: HttpSettings,
  stopping: AbortSignal,
): CommonHeaders {
  const vary = [
    VARY_ON_CREDENTIALS,
    ...(compression ? ['Accept-Encoding'] : []),
    ...(allowOrigins.length === 0 ? [] : ['Origin']),
  ].join(', ')
  const http = [
    ...Object.entries(SECURITY_HEADERS).flat(),
    'cache-control',
    'private, no-cache',
    'vary',
    vary,
  ]
  const https = [...http, 'strict-transport-security', STRICT_TRANSPORT_SECURITY]
  return { http, https, stopping }
}
