// Requests over kept connections. Fetch costs three times the time, and cannot be cut off behind what was sent.
import { Agent, request, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import {
  ResponseLostError,
  NotSentError,
  type HttpResponse,
  type HttpRequest,
  type SendRequest,
} from './adapter.js'

const REQUEST_TIMEOUT_MS = 30_000
const MAX_IDLE_SOCKETS = 256
/** Errors of these calls come before anything was sent. */
const CONNECT_SYSCALLS = new Set(['connect', 'getaddrinfo'])

/** The address of a node changes when it is started again. */
export interface NodeAddress {
  readonly url: string
}

export class HttpConnectionPool {
  readonly #agents = {
    plain: new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS }),
    secure: new SecureAgent({ keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS }),
  }

  /** `cutAfterMs`: the connection is cut so long after all was sent, unless the answer is there already. */
  sendTo(address: NodeAddress, cutAfterMs?: number): SendRequest {
    return async (method, path, details = {}) =>
      this.#exchange(`${address.url}${path}`, method, details, cutAfterMs)
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
  ): Promise<HttpResponse> {
    const json = body === undefined ? '' : JSON.stringify(body)
    const type = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(json)) }
    const isSecure = url.startsWith('https:')
    const options: RequestOptions = {
      method,
      agent: isSecure ? this.#agents.secure : this.#agents.plain,
      headers: { accept: 'application/json', ...(json === '' ? {} : type), ...headers },
      timeout: REQUEST_TIMEOUT_MS,
    }
    return new Promise((resolve, reject) => {
      const sent = (isSecure ? secureRequest : request)(url, options, (response) => {
        readResponse(response).then(resolve, (error: unknown) => reject(toResponseLostError(error)))
      })
      sent.on('error', (error) => {
        const cause = unwrapAggregate(error)
        reject(isUnsent(cause) ? new NotSentError(cause.message) : toResponseLostError(cause))
      })
      sent.on('timeout', () => sent.destroy(new Error('no answer came')))
      sent.end(json, () => {
        if (cutAfterMs !== undefined) setTimeout(() => sent.destroy(new Error('cut off')), cutAfterMs)
      })
    })
  }
}

async function readResponse(response: IncomingMessage): Promise<HttpResponse> {
  let text = ''
  response.setEncoding('utf8')
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, body: parseJsonOrText(text) }
}

function parseJsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A name with several addresses fails for each of them, in an error that says nothing itself. */
function unwrapAggregate(error: Error): Error {
  const [first] = error instanceof AggregateError ? (error.errors as readonly unknown[]) : []
  return first instanceof Error ? first : error
}

function isUnsent(error: Error): boolean {
  return 'syscall' in error && CONNECT_SYSCALLS.has(String(error.syscall))
}

function toResponseLostError(error: unknown): ResponseLostError {
  return new ResponseLostError(error instanceof Error ? error.message : String(error))
}
