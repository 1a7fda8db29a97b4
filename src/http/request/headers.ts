// Reads headers of requests: credentials (session cookie, API key, or user name and password), versions, idempotency keys. Sets the session
// cookies.
import { IncomingMessage, type IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { setHeader } from '../response/send.js'
import { VersoError } from '../../errors.js'

const SESSION_COOKIE = 'JSESSIONID'
const CSRF_COOKIE = 'CSRF-TOKEN'
const SESSION_COOKIE_PATTERN = /(?:^|;) *JSESSIONID=([^;]*)/

export function readSessionId({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return SESSION_COOKIE_PATTERN.exec(headers.cookie ?? '')?.[1]
}

/**
 * Sends the session cookie first, because some clients read only the first Set-Cookie. Sends `Secure` over https only, because browsers
 * drop secure cookies of plain http.
 */
export function setSessionCookies(
  request: FastifyRequest,
  reply: FastifyReply,
  path: string,
  values: { readonly sessionId: string; readonly csrfToken: string },
): void {
  const attributes = `; SameSite=Lax; Path=${path}${request.protocol === 'https' ? '; Secure' : ''}`
  setHeader(reply, 'set-cookie', `${SESSION_COOKIE}=${values.sessionId}; HttpOnly${attributes}`)
  setHeader(reply, 'set-cookie', `${CSRF_COOKIE}=${values.csrfToken}${attributes}`)
  setHeader(reply, 'x-csrf-token', values.csrfToken)
}

export function clearSessionCookies(reply: FastifyReply, path: string): void {
  const attributes = `; Max-Age=0; SameSite=Lax; Path=${path}`
  setHeader(reply, 'set-cookie', `${SESSION_COOKIE}=; HttpOnly${attributes}`)
  setHeader(reply, 'set-cookie', `${CSRF_COOKIE}=${attributes}`)
}

/** Reads `API-KEY: …` or `Authorization: Bearer …`. Returns undefined without either header. */
export function readApiKey({ headers }: FastifyRequest): string | undefined {
  const header = headers['api-key']
  if (header === undefined && headers.authorization === undefined) return undefined
  const headerKey = Array.isArray(header) ? header.join() : header
  const bearer = /^bearer(?: +(.*))?$/i.exec(headers.authorization ?? '')
  const bearerKey = bearer ? (bearer[1] ?? '').trim() : undefined
  if (headerKey !== undefined && bearerKey !== undefined && headerKey !== bearerKey)
    throw new VersoError('bad-request', 'API-KEY and Authorization have different keys: send one of them')
  return headerKey ?? bearerKey
}

/** Short, and without spaces and control characters, so that it stands as one word in a log. */
const REQUEST_ID_PATTERN = /^[\x21-\x7e]{1,128}$/

/** Takes over the id that a proxy or a client has given to the request; undefined if there is none, or an invalid one. */
export function readRequestId({ headers }: IncomingMessage): string | undefined {
  const id = headers['x-request-id']
  return typeof id === 'string' && REQUEST_ID_PATTERN.test(id) ? id : undefined
}

/** Version, trace id, parent id and flags. Versions after 00 may have more parts. */
const TRACE_PARENT_PATTERN =
  /^(?!ff|00-.{52}.)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-.*)?$/

/** Reads the trace id of a W3C `traceparent`; undefined if it is missing or invalid. */
export function readTraceId({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const parent = headers['traceparent']
  return typeof parent === 'string' ? TRACE_PARENT_PATTERN.exec(parent)?.[1] : undefined
}

export interface BasicCredentials {
  readonly username: string
  readonly password: string
}

/** Reads `Authorization: Basic …`. Returns undefined without such a header, and empty credentials if it is malformed. */
export function readBasicCredentials({ headers }: FastifyRequest): BasicCredentials | undefined {
  const encoded = /^basic +(.*)$/i.exec(headers.authorization ?? '')?.[1]
  if (encoded === undefined) return undefined
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const end = text.indexOf(':')
  return end < 0
    ? { username: '', password: '' }
    : { username: text.slice(0, end), password: text.slice(end + 1) }
}

/** Accepts a version (`If-Match: "3"`) or a complete ETag of a response. */
export function readIfMatch(request: FastifyRequest): { readonly ifMatch?: number } {
  const header = request.headers['if-match']
  if (header === undefined) return {}
  const version = /^(?:W\/)?"(\d{1,16})(?:\.[^"]*)?"$/.exec(header.trim())?.[1]
  if (version === undefined) throw new VersoError('bad-request', 'If-Match must be one version, such as "3"')
  return { ifMatch: Number(version) }
}

/** For requests with several records: each names its own version, so one `If-Match` for all would be ignored silently. */
export function refuseIfMatch(request: FastifyRequest): void {
  if (request.headers['if-match'] !== undefined)
    throw new VersoError(
      'bad-request',
      'If-Match applies to one record: send "version" in each record instead',
    )
}

export function readIdempotencyKey(request: FastifyRequest): { readonly idempotencyKey?: string } {
  const key = request.headers['idempotency-key']
  if (key === undefined) return {}
  return { idempotencyKey: Array.isArray(key) ? key.join(', ') : key }
}

/** For a response with a `noun` that is shown only once: an idempotency key would store it. */
export function refuseIdempotencyKey({ headers }: FastifyRequest, noun: string): void {
  if (headers['idempotency-key'] !== undefined)
    throw new VersoError(
      'bad-request',
      `A ${noun} is shown only once, so its response cannot be stored: omit Idempotency-Key`,
    )
}

/** More headers are left to Node, which limits their number. */
const MAX_INDEXED_HEADERS = 50
/** Clients choose the names, so the layouts of each length have a limit. */
const MAX_LAYOUTS = 8

/** The names of a request's headers. Most requests send the same names as an earlier one. */
interface HeaderLayout {
  /** As the client spells them, in its order. */
  readonly sentNames: readonly string[]
  /** In lower case, in the same order. */
  readonly names: readonly string[]
  /** Holds the names without their values. A copy is faster than an object that gets one name after the other. */
  readonly template: Readonly<IncomingHttpHeaders>
}

/** By the length of `rawHeaders`. */
const layouts: (HeaderLayout[] | undefined)[] = []

/**
 * A request whose `headers` are those of Node, found faster. Node compares and lower-cases the names of each request anew, which takes 8 % of
 * the CPU of a read from a browser.
 */
export class IndexedRequest extends IncomingMessage {
  #headers: IncomingHttpHeaders | undefined

  static {
    // TypeScript declares `headers` as a property, so a class cannot override it with an accessor.
    Object.defineProperty(this.prototype, 'headers', {
      get(this: IndexedRequest) {
        return (this.#headers ??= indexHeaders(this.rawHeaders) ?? readNodeHeaders(this))
      },
      set(this: IndexedRequest, headers: IncomingHttpHeaders) {
        this.#headers = headers
      },
    })
  }
}

/** Names and values alternate in `raw`. Returns undefined for an unknown layout. */
function indexHeaders(raw: readonly string[]): IncomingHttpHeaders | undefined {
  for (const { sentNames, names, template } of layouts[raw.length] ?? []) {
    if (!hasNames(raw, sentNames)) continue
    const headers = { ...template }
    for (let index = 0; index < names.length; index++) headers[names[index] ?? ''] = raw[2 * index + 1]
    return headers
  }
  return undefined
}

function hasNames(raw: readonly string[], names: readonly string[]): boolean {
  for (let index = 0; index < names.length; index++) if (raw[2 * index] !== names[index]) return false
  return true
}

function readNodeHeaders(request: IncomingMessage): IncomingHttpHeaders {
  const headers = Reflect.get<IncomingMessage, 'headers'>(IncomingMessage.prototype, 'headers', request)
  rememberLayout(request.rawHeaders, headers)
  return headers
}

/** Remembers the names if Node has taken each header as it was sent. Node combines or drops repeated headers, and makes a list of `Set-Cookie`. */
function rememberLayout(raw: readonly string[], headers: IncomingHttpHeaders): void {
  const names = Object.keys(headers)
  if (names.length > MAX_INDEXED_HEADERS || 2 * names.length !== raw.length) return
  const sentNames = names.map((_, index) => raw[2 * index] ?? '')
  const isPlain = names.every(
    (name, index) => name === sentNames[index]?.toLowerCase() && headers[name] === raw[2 * index + 1],
  )
  if (!isPlain) return
  let known = layouts[raw.length]
  if (known === undefined || known.length >= MAX_LAYOUTS) layouts[raw.length] = known = []
  known.push({ sentNames, names, template: Object.fromEntries(names.map((name) => [name, ''])) })
}
