// Requests over kept connections. Fetch costs three times the time, and cannot be cut off behind what was sent.
import { Agent, request, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { Lost, NotSent, type HttpAnswer, type HttpRequest, type Send } from './adapter.js'

const ANSWER_MS = 30_000
const KEPT_SOCKETS = 256
/** Errors of these calls come before anything was sent. */
const BEFORE_SENDING = new Set(['connect', 'getaddrinfo'])

/** The address of a node changes when it is started again. */
export interface Place {
  readonly url: string
}

export class Connection {
  readonly #agents = {
    plain: new Agent({ keepAlive: true, maxFreeSockets: KEPT_SOCKETS }),
    secure: new SecureAgent({ keepAlive: true, maxFreeSockets: KEPT_SOCKETS }),
  }

  /** `cutAfterMs`: the connection is cut so long after all was sent, unless the answer is there already. */
  to(place: Place, cutAfterMs?: number): Send {
    return async (method, path, details = {}) =>
      this.#exchange(`${place.url}${path}`, method, details, cutAfterMs)
  }

  close(): void {
    this.#agents.plain.destroy()
    this.#agents.secure.destroy()
  }

  async #exchange(
    url: string,
    method: string,
    { headers = {}, body }: HttpRequest,
    cutAfterMs: number | undefined,
  ): Promise<HttpAnswer> {
    const json = body === undefined ? '' : JSON.stringify(body)
    const type = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(json)) }
    const isSecure = url.startsWith('https:')
    const options: RequestOptions = {
      method,
      agent: isSecure ? this.#agents.secure : this.#agents.plain,
      headers: { accept: 'application/json', ...(json === '' ? {} : type), ...headers },
      timeout: ANSWER_MS,
    }
    return new Promise((resolve, reject) => {
      const sent = (isSecure ? secureRequest : request)(url, options, (response) => {
        collect(response).then(resolve, (error: unknown) => reject(lost(error)))
      })
      sent.on('error', (error) => {
        const cause = causeOf(error)
        reject(isUnsent(cause) ? new NotSent(cause.message) : lost(cause))
      })
      sent.on('timeout', () => sent.destroy(new Error('no answer came')))
      sent.end(json, () => {
        if (cutAfterMs !== undefined) setTimeout(() => sent.destroy(new Error('cut off')), cutAfterMs)
      })
    })
  }
}

async function collect(response: IncomingMessage): Promise<HttpAnswer> {
  let text = ''
  response.setEncoding('utf8')
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, body: parse(text) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A name with several addresses fails for each of them, in an error that says nothing itself. */
function causeOf(error: Error): Error {
  const [first] = error instanceof AggregateError ? (error.errors as readonly unknown[]) : []
  return first instanceof Error ? first : error
}

function isUnsent(error: Error): boolean {
  return 'syscall' in error && BEFORE_SENDING.has(String(error.syscall))
}

function lost(error: unknown): Lost {
  return new Lost(error instanceof Error ? error.message : String(error))
}
