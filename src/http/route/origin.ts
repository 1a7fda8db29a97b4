// The origin of a request: trusted proxies, checks of the headers `Host` and `Origin`, and CORS.
import type { IncomingHttpHeaders } from 'node:http'
import { compile } from '@fastify/proxy-addr'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { sendEmpty, setHeader } from '../response/send.js'
import { isLoopback } from '../connection/loopback.js'
import type { HttpSettings } from '../settings.js'

const PREFLIGHT_MAX_AGE_S = 600

/** Adds CORS headers for the origins of the setting `allowOrigins`. Returns true if it has answered the request, which was a preflight. */
export function handleCors(request: FastifyRequest, reply: FastifyReply, settings: HttpSettings): boolean {
  if (!isAllowedOrigin(request, settings)) return false
  setHeader(reply, 'access-control-allow-origin', request.headers.origin ?? '')
  setHeader(
    reply,
    'access-control-expose-headers',
    'Accept-Ranges, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Link, Location, Preference-Applied, Retry-After, X-Commit-Seq, X-Next-After, X-Request-Id',
  )
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined)
    return false
  setHeader(reply, 'access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE')
  setHeader(
    reply,
    'access-control-allow-headers',
    'Accept, API-KEY, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Last-Event-ID, Prefer, Range',
  )
  setHeader(reply, 'access-control-max-age', String(PREFLIGHT_MAX_AGE_S))
  sendEmpty(reply, 204)
  return true
}

/** False if a browser says that the request comes from a page of another site. */
export function isSameSite(request: FastifyRequest, settings: HttpSettings): boolean {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  const { origin } = request.headers
  return origin === undefined || isOwnOrigin(origin, request, settings)
}

function isOwnOrigin(origin: string, request: FastifyRequest, { publicUrl }: HttpSettings): boolean {
  if (!URL.canParse(origin)) return false
  const url = new URL(origin)
  return url.host === request.host || (publicUrl !== undefined && url.origin === new URL(publicUrl).origin)
}

/** True if the request comes from a page of another origin that the setting `allowOrigins` lists. */
export function isAllowedOrigin(request: FastifyRequest, settings: HttpSettings): boolean {
  const { origin } = request.headers
  if (origin === undefined || settings.allowOrigins.length === 0) return false
  return settings.allowOrigins.includes(origin) && !isOwnOrigin(origin, request, settings)
}

export type HostCheck = (request: {
  readonly headers: IncomingHttpHeaders
  readonly raw: { readonly httpVersion: string }
}) => void

/** Prevents DNS rebinding: a service that listens on a loopback address accepts only loopback names and the public URL as `Host`. */
export function createHostCheck(settings: Pick<HttpSettings, 'host' | 'publicUrl'>): HostCheck {
  if (!isLoopback(settings.host)) return requireHost
  const publicHostname =
    settings.publicUrl === undefined ? undefined : parseHostname(new URL(settings.publicUrl).host)
  // Nearly every request names the same host as the previous one.
  let accepted: string | undefined
  return (request) => {
    requireHost(request)
    const { host } = request.headers
    if (host === accepted) return
    const name = parseHostname(host)
    if (name === undefined || name === publicHostname || isLoopback(name)) {
      accepted = host
      return
    }
    throw new VersoError(
      'misdirected',
      'Wrong Host header: this service accepts loopback names and addresses only. Set --public-url to accept another host',
    )
  }
}

const requireHost: HostCheck = ({ headers, raw }) => {
  if (headers.host !== undefined || raw.httpVersion !== '1.1') return
  throw new VersoError('bad-request', 'An HTTP/1.1 request must have a Host header')
}

function parseHostname(host: string | undefined): string | undefined {
  if (host === undefined) return undefined
  return host
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase()
}

/** Clients choose the addresses in `X-Forwarded-For`, so the cache has a limit. */
const MAX_CACHED_ADDRESSES = 1_000

/** Returns a function that tells whether an address is that of a trusted proxy. It caches the results: parsing an address takes microseconds. */
export function createProxyTrust(proxies: readonly string[]): (address: string, hop: number) => boolean {
  const isTrusted = compile([...proxies])
  const known = new Map<string, boolean>()
  return (address, hop) => {
    const cached = known.get(address)
    if (cached !== undefined) return cached
    if (known.size >= MAX_CACHED_ADDRESSES) known.clear()
    const trusted = isTrusted(address, hop)
    known.set(address, trusted)
    return trusted
  }
}

/** Returns the public URL of the settings, or the URL of the request. A client chooses the latter by its `Host` header. */
export function buildBaseUrl(request: FastifyRequest, { publicUrl, basePath }: HttpSettings): string {
  const origin = publicUrl === undefined ? `${request.protocol}://${request.host}` : new URL(publicUrl).origin
  return origin + basePath
}
