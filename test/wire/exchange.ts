// Sends requests exactly as written and returns responses exactly as received, without a client library in between. Only compressed bodies
// are decoded.
import http from 'node:http'
import net from 'node:net'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { createServer, type Server } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from '../../src/http/settings.js'
import type { Page, WireRecord } from '../../src/wire.js'
import { expectFailures } from '../server-failures.js'
import { PASSWORD, USERNAME, type Service } from '../targets.js'

export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
}

export interface Sent {
  readonly method?: string
  readonly path: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: string | Buffer
}

export interface Envelope {
  readonly status: number
  readonly errors?: Readonly<Record<string, string>>
  readonly data: { readonly kind: string; readonly message: string } & Readonly<Record<string, unknown>>
}

export const JSON_BODY = { 'content-type': 'application/json' }
export const PATCH_BODY = { 'content-type': 'application/merge-patch+json' }
export const OK = '{"status":0,"data":[]}'

const agent = new http.Agent({ keepAlive: true, maxSockets: 64 })

export async function send(url: string, { method = 'GET', path, headers = {}, body }: Sent): Promise<Answer> {
  const { hostname, port, pathname } = new URL(url)
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  return new Promise((resolve, reject) => {
    const request = http.request({
      ...{ agent, hostname, port, method, path: (pathname === '/' ? '' : pathname) + path },
      headers: { ...length, ...headers },
    })
    request.on('error', reject)
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: decodeBody(response.headers, Buffer.concat(chunks)),
        })
      })
    })
    request.end(body)
  })
}

/** The text of a body, which may be compressed. */
export function decodeBody({ 'content-encoding': coding }: http.IncomingHttpHeaders, bytes: Buffer): string {
  if (bytes.length === 0 || coding === undefined) return bytes.toString()
  return (coding === 'br' ? brotliDecompressSync(bytes) : gunzipSync(bytes)).toString()
}

const SILENCE_MS = 30_000

/** The address for a socket; an IPv6 address has no brackets there. */
export function addressOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) }
}

/**
 * Sends bytes on a socket and resolves with everything received until the server closes it; status 0 means no response. With `isCut` the
 * request ends with its bytes, otherwise the server would wait for more.
 */
export async function sendRaw(url: string, bytes: string | Buffer, isCut = false): Promise<Answer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = net.connect(addressOf(url))
    socket.on('data', (chunk) => chunks.push(chunk))
    // The server may reset the connection after its response, because it need not read the rest of a rejected request.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      resolve(parseAnswer(Buffer.concat(chunks).toString()))
    })
    socket.setTimeout(SILENCE_MS, () => socket.destroy())
    if (isCut) socket.end(bytes)
    else socket.write(bytes)
  })
}

function parseAnswer(text: string): Answer {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const pairs = lines.map((line) => [
    line.slice(0, line.indexOf(':')).toLowerCase(),
    line.slice(line.indexOf(':') + 2),
  ])
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1] ?? 0)
  return {
    status,
    headers: Object.fromEntries(pairs) as http.IncomingHttpHeaders,
    text: rest.join('\r\n\r\n'),
  }
}

/** The text of one request, its last line included. */
export function rawRequest(line: string, headers: Readonly<Record<string, string>> = {}, body = ''): string {
  const all = { host: 'localhost', connection: 'close', ...headers }
  return [line, ...Object.entries(all).map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n')
}

export function json(answer: Answer): unknown {
  return JSON.parse(answer.text)
}

export function pageOf(answer: Answer): Omit<Page, 'limit'> {
  return json(answer) as Omit<Page, 'limit'>
}

/** The one record in a response. */
export function only(answer: Answer): WireRecord {
  expect(answer.status, answer.text).toBe(200)
  const { data } = json(answer) as { data: WireRecord[] }
  expect(data).toHaveLength(1)
  return data[0] as WireRecord
}

export function envelope(answer: Answer): Envelope {
  return json(answer) as Envelope
}

export function expectError(answer: Answer, status: number, kind: string): void {
  expect([answer.status, envelope(answer).data.kind], answer.text.slice(0, 500)).toEqual([status, kind])
}

export const credentials = (username: string = USERNAME, password: string = PASSWORD) =>
  JSON.stringify({ username, password })

export async function login(
  url: string,
  headers: http.OutgoingHttpHeaders = {},
  body = credentials(),
): Promise<Answer> {
  return send(url, { method: 'POST', path: '/callback', headers: { ...JSON_BODY, ...headers }, body })
}

export function sessionIdOf(answer: Answer): string {
  return /^JSESSIONID=([^;]*)/.exec(answer.headers['set-cookie']?.[0] ?? '')?.[1] ?? ''
}

/** The cookie of a new session. */
export async function openSession(
  url: string,
  headers?: http.OutgoingHttpHeaders,
  body?: string,
): Promise<string> {
  const answer = await login(url, headers, body)
  expect(answer.status, answer.text).toBe(200)
  return `JSESSIONID=${sessionIdOf(answer)}`
}

/** Requests with the cookie of one session. */
export function asUser(url: string, cookie: string) {
  const ask = (method: string, path: string, data?: unknown, headers: http.OutgoingHttpHeaders = {}) =>
    send(url, {
      ...{ method, path, headers: { cookie, ...(data === undefined ? {} : JSON_BODY), ...headers } },
      ...(data === undefined ? {} : { body: JSON.stringify({ data }) }),
    })
  return {
    ask,
    get: (path: string, headers?: http.OutgoingHttpHeaders) => ask('GET', path, undefined, headers),
    create: (model: string, data: unknown, headers?: http.OutgoingHttpHeaders) =>
      ask('PUT', `/ws/rest/${model}`, data, headers),
  }
}

export type User = ReturnType<typeof asUser>

/** Runs another server for the same service, with other settings. */
export async function withServer<T>(
  { app, expects }: Pick<Service, 'app' | 'expects'>,
  http: Partial<HttpSettings>,
  work: (url: string, server: Server) => Promise<T>,
  setupToken?: string,
): Promise<T> {
  const settings = { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0, ...http }
  const server = await createServer(app, settings, setupToken === undefined ? {} : { setupToken })
  expectFailures(server.fastify.server, expects)
  const [url = ''] = await server.listen()
  try {
    return await work(url, server)
  } finally {
    await server.close()
  }
}
