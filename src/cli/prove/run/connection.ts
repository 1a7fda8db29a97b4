// Sends requests over keep-alive connections. fetch takes three times as long, and cannot cut a connection after the
// request was sent.
import { Agent, request, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import {
  ResponseLostError,
  NotSentError,
  type HttpResponse,
  type HttpRequest,
  type SendRequest,
} from '../adapters/adapter.js'

const REQUEST_TIMEOUT_MS = 30_000
const MAX_IDLE_SOCKETS = 256
/** System calls that fail before anything was sent. */
const CONNECT_SYSCALLS = new Set(['connect', 'getaddrinfo'])

/** The url changes when the node is restarted. */
export interface NodeAddress {
  readonly url: string
}

export class HttpConnectionPool {
  readonly #agents = {
    plain: new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS }),
    secure: new SecureAgent({ keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS }),
  }

  /** `cutAfterMs` closes the connection this long after the request was sent, unless the response came first. */
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
      sent.on('timeout', () => sent.destroy(new Error(`no response within ${REQUEST_TIMEOUT_MS / 1000} s`)))
      sent.end(json, () => {
        if (cutAfterMs !== undefined)
          setTimeout(() => sent.destroy(new Error('connection closed by prove')), cutAfterMs)
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

/** A host with several addresses fails with an AggregateError that has no message of its own. */
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
