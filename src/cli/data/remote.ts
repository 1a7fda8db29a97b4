// HTTP client for a running service that speaks the same protocol: Verso or another implementation.
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../errors.js'
import { parseDispositionName } from '../../model/values/file-name.js'
import { isObject } from '../../model/values/value.js'

const RESPONSE_TIMEOUT_MS = 60_000
const MAX_REQUEST_ATTEMPTS = 5
const FIRST_RETRY_MS = 300
/** Statuses of a temporary failure. */
const RETRYABLE_STATUSES = new Set([429, 502, 503, 504])
const TLS_ERROR_CODE = /CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO/

export interface RemoteCredentials {
  readonly username: string
  readonly password: string
}

export type RemoteRecord = Readonly<Record<string, unknown>>

export interface RemoteDownload<T> {
  readonly name: string | undefined
  /** Return value of the callback that read the content. */
  readonly result: T
}

interface RemoteResponse {
  readonly status: number
  readonly body: unknown
}

class DownloadInterruptedError extends Error {}

export class RemoteClient {
  readonly #base: string
  readonly #cookies = new Map<string, string>()
  #token: string | undefined
  /** The service sends json fields as JSON text inside a string. */
  #isJsonText = false

  constructor(
    url: string,
    private readonly credentials: RemoteCredentials,
    private readonly firstRetryMs = FIRST_RETRY_MS,
  ) {
    this.#base = url.replace(/\/+$/, '')
  }

  get isJsonText(): boolean {
    return this.#isJsonText
  }

  async login(): Promise<void> {
    const { status, body } = await this.#postWithRetry('/callback', this.credentials)
    if (status === 401 || status === 403)
      throw this.#createError(
        `the login of ${this.credentials.username} was rejected; check the user name and the password`,
      )
    if (status !== 200) throw this.#createError(`the login failed with status ${status}; check the address`)
    const route = isObject(body) && isObject(body['route']) ? body['route']['path'] : undefined
    if (route !== undefined)
      throw this.#createError(`the login requires more than a password: ${JSON.stringify(route)}`)
    // Only Verso answers a login with a status, and only Verso sends json fields as plain JSON.
    this.#isJsonText = !(isObject(body) && body['status'] === 0)
  }

  /** Returns the next records by id, or undefined if the service has no such model. */
  async readPage(
    model: string,
    fields: readonly string[],
    after: number,
    limit: number,
  ): Promise<readonly RemoteRecord[] | undefined> {
    const criteria = [{ fieldName: 'id', operator: '>', value: after }]
    const data = { criteria, operator: 'and', _archived: true }
    const path = `/ws/rest/${encodeURIComponent(model)}/search`
    const { status, body } = await this.#postLoggedIn(path, {
      fields,
      sortBy: ['id'],
      limit,
      offset: 0,
      data,
    })
    const { data: found, total } = isObject(body) ? body : {}
    const report = isObject(found) ? found : {}
    if (status === 404 || report['kind'] === 'unknown-model' || report['message'] === model) return undefined
    if (status !== 200 || !isObject(body) || body['status'] !== 0) {
      const texts = [report['title'], report['message']].filter((text) => typeof text === 'string')
      throw this.#createError(`${model}: ${texts.join(': ') || `status ${status}`}`)
    }
    if (Array.isArray(found)) return found.filter(isObject)
    // Some services answer a failed search with an empty page; the total gives it away.
    if (typeof total === 'number' && total > 0)
      throw this.#createError(
        `${model}: the search failed: its total is ${total}, but it returned no records`,
      )
    return []
  }

  /**
   * Streams a file to `take`, and retries from the beginning if the connection breaks. Undefined if the field is empty.
   */
  async download<T>(
    model: string,
    id: number,
    field: string,
    take: (content: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<RemoteDownload<T> | 'gone' | undefined> {
    const path = `/ws/rest/${encodeURIComponent(model)}/${id}/${encodeURIComponent(field)}/download`
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#downloadOnce(path, take)
      if ('result' in answer) return answer
      if (answer.status === 204) return undefined
      if (answer.status === 404) return 'gone'
      const isRetryable =
        answer.status === 401 || answer.status === 0 || RETRYABLE_STATUSES.has(answer.status)
      if (!isRetryable || attempt === MAX_REQUEST_ATTEMPTS)
        throw this.#createError(`${model} ${id} ${field}: ${answer.reason}`)
      if (answer.status === 401) await this.login()
      else await sleep(this.firstRetryMs * 2 ** (attempt - 1))
    }
  }

  /** Status 0: no response came, or the content was interrupted. */
  async #downloadOnce<T>(
    path: string,
    take: (content: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<RemoteDownload<T> | { readonly status: number; readonly reason: string }> {
    const idle = new AbortController()
    const timer = setTimeout(() => {
      idle.abort(new Error(`no data arrived for ${RESPONSE_TIMEOUT_MS / 1000} s`))
    }, RESPONSE_TIMEOUT_MS)
    const broken = (error: unknown) => new DownloadInterruptedError(this.#describeNetworkError(error))
    try {
      const headers = { ...this.#headers(), accept: '*/*' }
      const request = fetch(this.#base + path, { headers, redirect: 'manual', signal: idle.signal })
      const response = await request.catch((error: unknown) => {
        throw broken(error)
      })
      this.#storeCookies(response)
      const { status, body } = response
      if (status !== 200) {
        await body?.cancel()
        return { status, reason: `status ${status}` }
      }
      const content = streamBody(body ?? [], () => timer.refresh(), broken)
      const name = parseDispositionName(response.headers.get('content-disposition') ?? '')
      return { name, result: await take(content) }
    } catch (error) {
      // A local error such as a full disk is not retried.
      if (!(error instanceof DownloadInterruptedError)) throw error
      return { status: 0, reason: error.message }
    } finally {
      clearTimeout(timer)
    }
  }

  /** Logs in again if the session expires during a long copy. */
  async #postLoggedIn(path: string, body: object): Promise<RemoteResponse> {
    const answer = await this.#postWithRetry(path, body)
    if (answer.status !== 401) return answer
    await this.login()
    return this.#postWithRetry(path, body)
  }

  async #postWithRetry(path: string, body: object): Promise<RemoteResponse> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#post(path, body)
      if ('status' in answer && !RETRYABLE_STATUSES.has(answer.status)) return answer
      if (attempt === MAX_REQUEST_ATTEMPTS) {
        if ('status' in answer)
          throw this.#createError(
            `the service is unavailable: status ${answer.status} after ${MAX_REQUEST_ATTEMPTS} attempts`,
          )
        throw this.#createError(`the service cannot be reached: ${answer.reason}`)
      }
      await sleep(this.firstRetryMs * 2 ** (attempt - 1))
    }
  }

  async #post(path: string, body: object): Promise<RemoteResponse | { readonly reason: string }> {
    try {
      const response = await fetch(this.#base + path, {
        method: 'POST',
        headers: { ...this.#headers(), 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify(body),
        redirect: 'manual',
        signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
      })
      this.#storeCookies(response)
      const text = await response.text()
      return { status: response.status, body: parseJsonOrUndefined(text) }
    } catch (error) {
      return { reason: this.#describeNetworkError(error) }
    }
  }

  #headers(): Record<string, string> {
    return {
      'x-requested-with': 'XMLHttpRequest',
      cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(this.#token === undefined ? {} : { 'x-csrf-token': this.#token }),
    }
  }

  #storeCookies(response: Response): void {
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=;]+)=([^;]*)/.exec(cookie) ?? []
      if (/;\s*max-age=0/i.test(cookie)) this.#cookies.delete(name)
      else if (name !== '') this.#cookies.set(name, value)
    }
    this.#token = response.headers.get('x-csrf-token') ?? this.#cookies.get('CSRF-TOKEN') ?? this.#token
  }

  /** Throws for an untrusted certificate, which a retry would not fix. */
  #describeNetworkError(error: unknown): string {
    const cause = error instanceof Error ? (error.cause ?? error) : error
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    const message = cause instanceof Error ? cause.message : String(cause)
    if (TLS_ERROR_CODE.test(code))
      throw this.#createError(
        `its certificate is not trusted (${code}); set NODE_EXTRA_CA_CERTS to a file with the certificate of its authority`,
      )
    return message || code
  }

  #createError(message: string): ConfigError {
    return new ConfigError('Nothing was imported', [`${this.#base}: ${message}`])
  }
}

/**
 * Yields the content and turns connection errors into DownloadInterruptedError, to tell them from errors of the
 * consumer.
 */
async function* streamBody(
  body: AsyncIterable<Uint8Array> | readonly Uint8Array[],
  onChunk: () => void,
  broken: (error: unknown) => DownloadInterruptedError,
): AsyncGenerator<Uint8Array> {
  const chunks = Readable.from(body)[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  for (;;) {
    const next = await chunks.next().catch((error: unknown) => {
      throw broken(error)
    })
    if (next.done === true) return
    onChunk()
    yield next.value
  }
}

function parseJsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // An error page; the status is enough.
    return undefined
  }
}
