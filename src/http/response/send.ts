// Sends responses with their headers. A body in memory goes to Node in one write; Fastify pipes streams, because it turns an early failure into an error response.
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { HeaderList } from './headers.js'
import {
  MIN_COUNTED_BODY_BYTES,
  StagedBody,
  type ResponseBody,
  type ResponseBuffer,
} from './response-buffer.js'

declare module 'fastify' {
  interface FastifyInstance {
    readonly responseBuffer: ResponseBuffer
  }
  interface FastifyReply {
    /** The common headers with the values that this response replaces; null if it replaces none. */
    replacedHeaders: HeaderList | null
    /** The headers of this response alone; null if it has none. */
    ownHeaders: string[] | null
  }
}

/** Undefined if the response is complete. Fastify waits for a reply that it still sends. */
export type SentReply = FastifyReply | undefined

export const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends `data` in the envelope of a successful response. */
export function sendData(reply: FastifyReply, data: object): SentReply {
  return sendJson(reply, JSON.stringify({ status: 0, data }))
}

export function sendJson(reply: FastifyReply, body: ResponseBody, isWriteResult = false): SentReply {
  return sendBody(reply, JSON_TYPE, body, isWriteResult)
}

export function sendBody(
  reply: FastifyReply,
  type: string,
  body: ResponseBody,
  isWriteResult = false,
): SentReply {
  const { raw } = reply
  const isCounted = body instanceof StagedBody || body.length > MIN_COUNTED_BODY_BYTES
  const buffered = isCounted ? reply.server.responseBuffer.buffer(body, raw, isWriteResult) : body
  if (buffered instanceof StagedBody) {
    setHeader(reply, 'content-length', String(buffered.length))
    return sendStream(reply, type, buffered.stream())
  }
  const isText = typeof buffered === 'string'
  const length = isText ? Buffer.byteLength(buffered) : buffered.length
  const headers = buildHeaderList(reply)
  headers.push('content-type', type, 'content-length', String(length))
  raw.writeHead(raw.statusCode, headers)
  // If each character is one byte, Node need not look for others.
  raw.write(buffered, isText && length === buffered.length ? 'latin1' : 'utf8')
  process.nextTick(endResponse, raw)
  return undefined
}

/** Runs after the write. `end` with a body would write twice, the body and an empty text, which takes a tenth of the CPU of a read. */
function endResponse(raw: ServerResponse): void {
  raw.end()
}

/** Sends a response without a body. */
export function sendEmpty(reply: FastifyReply, status: number): SentReply {
  const { raw } = reply
  const headers = buildHeaderList(reply)
  if (status !== 204 && status !== 304 && !headers.includes('content-length'))
    headers.push('content-length', '0')
  raw.writeHead(status, headers)
  raw.end()
  return undefined
}

/** Redirects a browser to a page, with GET. */
export function sendRedirect(reply: FastifyReply, location: string): SentReply {
  setHeader(reply, 'location', location)
  return sendEmpty(reply, 303)
}

export function sendStream(reply: FastifyReply, type: string, stream: Readable): SentReply {
  const headers = buildHeaderList(reply)
  headers.push('content-type', type)
  for (let index = 0; index < headers.length; index += 2)
    void reply.header(headers[index] ?? '', headers[index + 1])
  return reply.send(stream)
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
  if (index < 0) throw new Error(`${name} is not a common header: set it with setHeader`)
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
  if (reply.server.commonHeaders.stopping.aborted && !list.includes('connection'))
    list.push('connection', 'close')
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
