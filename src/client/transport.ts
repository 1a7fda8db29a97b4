// Sends requests: logs in, repeats what is safe to repeat, and turns failures into errors.
import type { Account } from '../wire.js'
import { getFirst, isTransient, readAnswer, readEnvelope, refuseRedirect, type JsonAnswer } from './answer.js'
import { CallScope, type CallOptions } from './call-scope.js'
import { createRequestError, RequestError } from './errors.js'
import { ClientSession, type ClientCredentials, type Ticket } from './session.js'

const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_RETRIES = 7
const DEFAULT_STALL_TIMEOUT_MS = 45_000
const FIRST_BACKOFF_MS = 100
const MAX_BACKOFF_MS = 5_000

/** Settings of a client. */
export interface ConnectOptions {
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Milliseconds for a call with its retries; 60,000 by default. */
  readonly timeout?: number | undefined
  /** How often a request is repeated; 7 by default, which takes about 6 seconds. */
  readonly retries?: number | undefined
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Milliseconds without a byte after which `follow` connects again; 45,000 by default. The service sends one every 15 seconds. */
  readonly stallTimeout?: number | undefined
}

/** Values of query parameters. Undefined ones are left out. */
export type QueryValues = Readonly<Record<string, string | number | boolean | undefined>>

export interface ClientRequest {
  readonly method: string
  /** Begins with `/`, without the base URL. */
  readonly path: string
  readonly query?: QueryValues | undefined
  /** Sent as JSON, unless it is a form. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Idempotency key of a write. */
  readonly key?: string | undefined
  /** Only reads, although its method is POST. */
  readonly isRead?: boolean | undefined
}

/** A request as each attempt sends it. */
interface PreparedRequest {
  readonly url: string
  readonly init: {
    readonly method: string
    readonly headers: Readonly<Record<string, string>>
    readonly body?: string | FormData
    readonly redirect: 'manual'
  }
  readonly key: string | undefined
}

export class Transport {
  readonly baseUrl: string
  readonly session: ClientSession
  readonly options: ConnectOptions

  constructor(url: string | URL, credentials: ClientCredentials, options: ConnectOptions) {
    const { location } = globalThis as { readonly location?: { readonly href: string } }
    const { href, protocol, username, password } = new URL(url, location?.href)
    if (!/^https?:$/.test(protocol))
      throw new TypeError(`The URL of a service begins with http:// or https://, not ${protocol}`)
    if (username !== '' || password !== '')
      throw new TypeError('Pass the user name and the password as credentials, not in the URL')
    this.baseUrl = href.replace(/[?#].*$/, '').replace(/\/+$/, '')
    this.options = options
    this.session = new ClientSession(credentials, (body, headers) => this.#logIn(body, headers))
  }

  get stallTimeoutMs(): number {
    return this.options.stallTimeout ?? DEFAULT_STALL_TIMEOUT_MS
  }

  /** Runs one call with its time limit and its signal. */
  async run<T>(options: CallOptions | undefined, work: (scope: CallScope) => Promise<T>): Promise<T> {
    const scope = this.#createScope(options)
    try {
      return await work(scope)
    } catch (error) {
      throw scope.explain(error)
    } finally {
      scope.close()
    }
  }

  /** Begins a call whose result is still being received. The result closes the scope; undefined does so at once. */
  async begin<T>(options: CallOptions, work: (scope: CallScope) => Promise<T>): Promise<T> {
    const scope = this.#createScope(options)
    try {
      const result = await work(scope)
      if (result === undefined) scope.close()
      else scope.stopTimer()
      return result
    } catch (error) {
      scope.close()
      throw scope.explain(error)
    }
  }

  async send(scope: CallScope, request: ClientRequest): Promise<JsonAnswer> {
    return this.#repeat(scope, request, readEnvelope)
  }

  /** Sends a request of the caller, whose answer may be any JSON. */
  async sendAny(scope: CallScope, request: ClientRequest): Promise<JsonAnswer> {
    return this.#repeat(scope, request, readAnswer)
  }

  /** Sends a request whose response is not JSON. The caller reads the body. `isExpected` tells a response of the service from that of a proxy. */
  async open(
    scope: CallScope,
    request: ClientRequest,
    isExpected: (response: Response) => boolean,
  ): Promise<Response> {
    return this.#repeat(scope, request, async (response) => {
      if (!response.ok) await readAnswer(response)
      if (isExpected(response)) return response
      await response.body?.cancel()
      const { status } = response
      const message = `The response with status ${status} is not an answer of the service`
      throw createRequestError({ kind: 'network', message, status })
    })
  }

  /** Waits before the next attempt. Throws the failure if the call would end before. */
  async pause(scope: CallScope, attempt: number, failure: RequestError): Promise<void> {
    const jitterMs = Math.random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (attempt - 1))
    const delayMs = (failure.retryAfterMs ?? 0) + jitterMs
    if (delayMs >= scope.remainingMs) throw failure
    scope.lastFailure = failure
    await scope.wait(delayMs)
  }

  #createScope(options: CallOptions | undefined): CallScope {
    return new CallScope({
      signal: options?.signal,
      timeout: options?.timeout ?? this.options.timeout ?? DEFAULT_TIMEOUT_MS,
    })
  }

  async #repeat<T>(
    scope: CallScope,
    request: ClientRequest,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const { retries = DEFAULT_RETRIES } = this.options
    const canRepeat = request.key !== undefined || request.isRead === true || request.method === 'GET'
    scope.idempotencyKey = request.key
    const prepared = this.#prepare(request)
    let hasRenewed = false
    for (let attempt = 1; ;) {
      // A failed login ends the call: it has made its own attempts.
      const ticket = await this.session.open(scope)
      const result = await this.#attempt(scope, prepared, ticket.headers, read)
      if (!(result instanceof RequestError)) return result
      if (result.status === 401 && this.session.canLogIn && !hasRenewed) {
        hasRenewed = true
        this.session.expire(ticket)
        continue
      }
      if (!canRepeat || !isTransient(result) || attempt > retries) throw result
      await this.pause(scope, attempt++, result)
    }
  }

  /** Returns the failure of an attempt. Throws if the call has ended. */
  async #attempt<T>(
    scope: CallScope,
    { url, init, key }: PreparedRequest,
    credentials: Ticket['headers'],
    read: (response: Response) => Promise<T>,
  ): Promise<T | RequestError> {
    const { fetch = globalThis.fetch } = this.options
    const headers = { ...init.headers, ...credentials }
    requireValidHeaders(headers)
    try {
      // A fetch of a browser must be called without a receiver.
      const response = await fetch(url, { ...init, headers, signal: scope.signal })
      refuseRedirect(response)
      this.session.keepCookies(response)
      const result = await read(response)
      this.session.requireOwnCookie()
      return result
    } catch (cause) {
      scope.throwIfAborted()
      const details = cause instanceof RequestError ? cause.details : describeNetworkError(url, init, cause)
      return createRequestError({ ...details, idempotencyKey: key })
    }
  }

  #prepare({ method, path, query, body, headers, key }: ClientRequest): PreparedRequest {
    // Otherwise the path could change the name of the host, which would then receive the credentials.
    if (!path.startsWith('/')) throw new TypeError('A path begins with "/"')
    const isForm = body instanceof FormData
    const isJson = body !== undefined && !isForm
    const init = {
      method,
      headers: {
        accept: 'application/json',
        ...(isJson ? { 'content-type': 'application/json' } : {}),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...this.options.headers,
        ...headers,
      },
      ...(isForm ? { body } : {}),
      ...(isJson ? { body: JSON.stringify(body) } : {}),
      // A redirect could send the credentials to another server.
      redirect: 'manual' as const,
    }
    return { url: `${this.baseUrl}${path}${formatQuery(query)}`, init, key }
  }

  /** Wrong credentials are never sent twice; a lost response is, because a second session does no harm. */
  async #logIn(body: object, headers: Ticket['headers']): Promise<Account> {
    const { retries = DEFAULT_RETRIES, timeout = DEFAULT_TIMEOUT_MS } = this.options
    const request = this.#prepare({ method: 'POST', path: '/callback', body })
    const scope = new CallScope({ timeout })
    try {
      for (let attempt = 1; ;) {
        const result = await this.#attempt(scope, request, headers, async (response) => {
          const answer = await readEnvelope(response)
          this.session.keepLogin(response)
          return answer
        })
        if (!(result instanceof RequestError)) return getFirst(result.body) as Account
        if (!isTransient(result) || attempt > retries) throw result
        await this.pause(scope, attempt++, result)
      }
    } finally {
      scope.close()
    }
  }
}

/** `fetch` would fail as if the network had, and its message could contain the API key. */
function requireValidHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      new Headers([[name, value]])
    } catch {
      throw new TypeError(`The value of the header ${name} has characters that HTTP does not allow`)
    }
  }
}

function describeNetworkError(url: string, { method }: PreparedRequest['init'], cause: unknown) {
  // Node hides the reason in the cause: its message is only "fetch failed".
  const reason = cause instanceof Error ? (cause.cause ?? cause) : cause
  const text = reason instanceof Error ? reason.message : String(reason)
  const message = `${method} ${url.replace(/\?.*/s, '')} got no complete response: ${text}`
  return { kind: 'network', message, cause }
}

function formatQuery(query: QueryValues = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${encodeURIComponent(name)}=${encodeText(String(value))}`],
  )
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

/** Encodes a part of a URL. Half a character has no encoding: sending another one instead could find other records. */
export function encodeText(text: string): string {
  if (/\p{Surrogate}/u.test(text)) throw new TypeError('The text contains half of a surrogate pair')
  return encodeURIComponent(text)
}

/** A random UUID. `crypto.randomUUID` is missing in pages that were not loaded over https. */
export function createIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/(.{8})(.{4}).(.{3}).(.{3})(.{12})/, '$1-$2-4$3-a$4-$5')
}
