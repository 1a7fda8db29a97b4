// Sends responses. A body in memory goes to Node in one write; Fastify pipes streams, because it turns an early failure into an error response.
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { buildHeaderList, setHeader } from './headers.js'
import { StagedBody, type ResponseBody, type ResponseBuffer } from './response-buffer.js'

declare module 'fastify' {
  interface FastifyInstance {
    readonly responseBuffer: ResponseBuffer
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
  const buffered = reply.server.responseBuffer.buffer(body, raw, isWriteResult)
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
