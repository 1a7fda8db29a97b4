// A running service of the same protocol, as a client sees it: this one, or another that speaks it.
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../errors.js'
import { parseDispositionName } from '../../model/values/file-name.js'
import { isObject } from '../../model/values/value.js'

const ANSWER_MS = 60_000
const ATTEMPTS = 5
const FIRST_WAIT_MS = 300
/** Worth another try: whoever answers so may be ready in a moment. */
const PASSING = new Set([429, 502, 503, 504])
const TLS_FAULT = /CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO/

export interface Credentials {
  readonly username: string
  readonly password: string
}

export type RemoteRecord = Readonly<Record<string, unknown>>

export interface Downloaded<T> {
  readonly name: string | undefined
  /** What the content has become. */
  readonly result: T
}

interface Answer {
  readonly status: number
  readonly body: unknown
}

class BrokenOff extends Error {}

export class Remote {
  readonly #base: string
  readonly #cookies = new Map<string, string>()
  #token: string | undefined
  /** Where json fields come as text inside of a text. */
  #isJsonText = false

  constructor(
    url: string,
    private readonly credentials: Credentials,
    private readonly firstWaitMs = FIRST_WAIT_MS,
  ) {
    this.#base = url.replace(/\/+$/, '')
  }

  get isJsonText(): boolean {
    return this.#isJsonText
  }

  async login(): Promise<void> {
    const { status, body } = await this.#ask('/callback', this.credentials)
    if (status === 401 || status === 403)
      throw this.#fault(`it does not let ${this.credentials.username} in: is the password right?`)
    if (status !== 200) throw this.#fault(`the login was answered with ${status}; is this the right address?`)
    const route = isObject(body) && isObject(body['route']) ? body['route']['path'] : undefined
    if (route !== undefined) throw this.#fault(`it asks for more than a password: ${JSON.stringify(route)}`)
    // Only this service says who has logged in; it also has json as it is.
    this.#isJsonText = !(isObject(body) && body['status'] === 0)
  }

  /** The next records by id, or undefined if there is no such model. */
  async next(
    model: string,
    fields: readonly string[],
    after: number,
    limit: number,
  ): Promise<readonly RemoteRecord[] | undefined> {
    const criteria = [{ fieldName: 'id', operator: '>', value: after }]
    const data = { criteria, operator: 'and', _archived: true }
    const path = `/ws/rest/${encodeURIComponent(model)}/search`
    const { status, body } = await this.#askLoggedIn(path, { fields, sortBy: ['id'], limit, offset: 0, data })
    const { data: found, total } = isObject(body) ? body : {}
    const report = isObject(found) ? found : {}
    if (status === 404 || report['kind'] === 'unknown-model' || report['message'] === model) return undefined
    if (status !== 200 || !isObject(body) || body['status'] !== 0) {
      const said = [report['title'], report['message']].filter((text) => typeof text === 'string')
      throw this.#fault(`${model}: ${said.join(': ') || `it answered with ${status}`}`)
    }
    if (Array.isArray(found)) return found.filter(isObject)
    // A search that failed may be answered as an empty one; its count tells.
    if (typeof total === 'number' && total > 0)
      throw this.#fault(`${model}: it counts ${total} and shows none`)
    return []
  }

  /** A file, read while it arrives; undefined if the field is empty. Begins anew where the connection breaks off. */
  async download<T>(
    model: string,
    id: number,
    field: string,
    take: (content: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<Downloaded<T> | 'gone' | undefined> {
    const path = `/ws/rest/${encodeURIComponent(model)}/${id}/${encodeURIComponent(field)}/download`
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#tryToDownload(path, take)
      if ('result' in answer) return answer
      if (answer.status === 204) return undefined
      if (answer.status === 404) return 'gone'
      const isPassing = answer.status === 401 || answer.status === 0 || PASSING.has(answer.status)
      if (!isPassing || attempt === ATTEMPTS) throw this.#fault(`${model} ${id} ${field}: ${answer.trouble}`)
      if (answer.status === 401) await this.login()
      else await sleep(this.firstWaitMs * 2 ** (attempt - 1))
    }
  }

  /** Status 0: there was none, or the content broke off. */
  async #tryToDownload<T>(
    path: string,
    take: (content: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<Downloaded<T> | { readonly status: number; readonly trouble: string }> {
    const idle = new AbortController()
    const timer = setTimeout(() => {
      idle.abort(new Error('it does not go on'))
    }, ANSWER_MS)
    const broken = (error: unknown) => new BrokenOff(this.#troubleOf(error))
    try {
      const headers = { ...this.#headers(), accept: '*/*' }
      const asked = fetch(this.#base + path, { headers, redirect: 'manual', signal: idle.signal })
      const response = await asked.catch((error: unknown) => {
        throw broken(error)
      })
      this.#keep(response)
      const { status, body } = response
      if (status !== 200) {
        await body?.cancel()
        return { status, trouble: `it answered with ${status}` }
      }
      const content = arriving(body ?? [], () => timer.refresh(), broken)
      const name = parseDispositionName(response.headers.get('content-disposition') ?? '')
      return { name, result: await take(content) }
    } catch (error) {
      // What is wrong on our side, a full disk for one, is no better the next time.
      if (!(error instanceof BrokenOff)) throw error
      return { status: 0, trouble: error.message }
    } finally {
      clearTimeout(timer)
    }
  }

  /** A session may end in the middle of a long copy. */
  async #askLoggedIn(path: string, body: object): Promise<Answer> {
    const answer = await this.#ask(path, body)
    if (answer.status !== 401) return answer
    await this.login()
    return this.#ask(path, body)
  }

  async #ask(path: string, body: object): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#try(path, body)
      if ('status' in answer && !PASSING.has(answer.status)) return answer
      if (attempt === ATTEMPTS) {
        if ('status' in answer) throw this.#fault(`it is busy: it answers with ${answer.status}`)
        throw this.#fault(`it cannot be reached: ${answer.trouble}`)
      }
      await sleep(this.firstWaitMs * 2 ** (attempt - 1))
    }
  }

  async #try(path: string, body: object): Promise<Answer | { readonly trouble: string }> {
    try {
      const response = await fetch(this.#base + path, {
        method: 'POST',
        headers: { ...this.#headers(), 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify(body),
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_MS),
      })
      this.#keep(response)
      const text = await response.text()
      return { status: response.status, body: parse(text) }
    } catch (error) {
      return { trouble: this.#troubleOf(error) }
    }
  }

  #headers(): Record<string, string> {
    return {
      'x-requested-with': 'XMLHttpRequest',
      cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(this.#token === undefined ? {} : { 'x-csrf-token': this.#token }),
    }
  }

  #keep(response: Response): void {
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=;]+)=([^;]*)/.exec(cookie) ?? []
      if (/;\s*max-age=0/i.test(cookie)) this.#cookies.delete(name)
      else if (name !== '') this.#cookies.set(name, value)
    }
    this.#token = response.headers.get('x-csrf-token') ?? this.#cookies.get('CSRF-TOKEN') ?? this.#token
  }

  /** A certificate that is not trusted is no better the next time. */
  #troubleOf(error: unknown): string {
    const cause = error instanceof Error ? (error.cause ?? error) : error
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    const message = cause instanceof Error ? cause.message : String(cause)
    if (TLS_FAULT.test(code))
      throw this.#fault(`its certificate is not trusted (${code}): name its authority in NODE_EXTRA_CA_CERTS`)
    return message || code
  }

  #fault(message: string): ConfigError {
    return new ConfigError('Nothing was imported', [`${this.#base}: ${message}`])
  }
}

/** Content as it comes; what goes wrong with the connection is told apart from what goes wrong with us. */
async function* arriving(
  body: AsyncIterable<Uint8Array> | readonly Uint8Array[],
  onChunk: () => void,
  broken: (error: unknown) => BrokenOff,
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // An error page: its status says enough.
    return undefined
  }
}
