// Response headers. Those of every response are built once, when the service starts.
import type { FastifyReply } from 'fastify'
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

/** Names and values by turns, which Node writes fastest. */
export type HeaderList = readonly string[]

/** The headers of every response. */
export interface CommonHeaders {
  readonly http: HeaderList
  readonly https: HeaderList
  /** True during shutdown: a response then tells the client that its connection closes. */
  readonly isStopping: () => boolean
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly commonHeaders: CommonHeaders
  }
  interface FastifyReply {
    /** The common headers with the values that this response replaces; null if it replaces none. */
    replacedHeaders: HeaderList | null
    /** The headers of this response alone; null if it has none. */
    ownHeaders: string[] | null
  }
}

export function buildCommonHeaders(
  { allowOrigins }: HttpSettings,
  isStopping: () => boolean = () => false,
): CommonHeaders {
  const vary = allowOrigins.length === 0 ? VARY_ON_CREDENTIALS : `${VARY_ON_CREDENTIALS}, Origin`
  const http = [
    ...Object.entries(SECURITY_HEADERS).flat(),
    'cache-control',
    'private, no-cache',
    'vary',
    vary,
  ]
  const https = [...http, 'strict-transport-security', STRICT_TRANSPORT_SECURITY]
  return { http, https, isStopping }
}

/** Adds a header that is not among the common ones. The last value of a name wins, except for `set-cookie`. */
export function setHeader(reply: FastifyReply, name: string, value: string): void {
  const own = (reply.ownHeaders ??= [])
  const index = name === 'set-cookie' ? -1 : findName(own, name)
  if (index < 0) own.push(name, value)
  else own[index + 1] = value
}

/** Replaces the value of a common header for this response. */
export function replaceHeader(reply: FastifyReply, name: string, value: string): void {
  const headers = [...getCommonHeaders(reply)]
  const index = findName(headers, name)
  if (index < 0) throw new Error(`${name} is no common header: set it with setHeader`)
  headers[index + 1] = value
  reply.replacedHeaders = headers
}

/** Adds a request header on which the response depends to `Vary`. */
export function addVary(reply: FastifyReply, name: string): void {
  const headers = getCommonHeaders(reply)
  const before = headers[findName(headers, 'vary') + 1] ?? ''
  replaceHeader(reply, 'vary', `${before}, ${name}`)
}

/** For responses about passwords and sessions: no cache may store them. */
export function setNoStore(reply: FastifyReply): void {
  replaceHeader(reply, 'cache-control', 'no-store')
}

/** Returns all headers of the response. The caller may add to the list. */
export function buildHeaderList(reply: FastifyReply): string[] {
  const list = ['x-request-id', reply.request.id, ...getCommonHeaders(reply)]
  if (reply.ownHeaders !== null) list.push(...reply.ownHeaders)
  if (reply.server.commonHeaders.isStopping()) list.push('connection', 'close')
  return list
}

function getCommonHeaders({ request, server, replacedHeaders }: FastifyReply): HeaderList {
  if (replacedHeaders !== null) return replacedHeaders
  return request.protocol === 'https' ? server.commonHeaders.https : server.commonHeaders.http
}

/** Returns the index of a name, or -1. */
function findName(headers: HeaderList, name: string): number {
  for (let index = 0; index < headers.length; index += 2) if (headers[index] === name) return index
  return -1
}
