// Sends responses with their headers. A body in memory goes to Node in one write; Fastify pipes streams, because it turns an early failure into an error response.
import type { ServerResponse } from 'node:http'
import { pipeline, type Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { MIN_COMPRESSED_BYTES, type Compressor } from './compressor.js'
import { addCodingToEtag, chooseCoding, findHeldEtag, type Coding } from './content-coding.js'
import type { HeaderList } from './headers.js'
import {
  MIN_COUNTED_BODY_BYTES,
  StagedBody,
  type JsonContent,
  type ResponseBody,
  type ResponseBuffer,
} from './response-buffer.js'

declare module 'fastify' {
  interface FastifyInstance {
    readonly responseBuffer: ResponseBuffer
    /** Null if the settings disable compression. */
    readonly compressor: Compressor | null
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

/** On a response that was stored for an earlier request with the same `Idempotency-Key`. */
export const REPLAYED_HEADER = 'idempotency-replayed'
export const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends `data` in the envelope of a successful response. */
export function sendData(reply: FastifyReply, data: object): SentReply {
  return sendJson(reply, JSON.stringify({ status: 0, data }))
}

export function sendJson(reply: FastifyReply, body: ResponseBody, isWriteResult = false): SentReply {
  return sendBody(reply, JSON_TYPE, body, isWriteResult)
}

/** Compresses the body if the client accepts that. A large body is staged, or sent as a stream of compressed parts. */
export function sendBody(
  reply: FastifyReply,
  type: string,
  body: ResponseBody,
  isWriteResult = false,
): SentReply {
  const isCounted = body instanceof StagedBody || body.length > MIN_COUNTED_BODY_BYTES
  const buffered = isCounted ? reply.server.responseBuffer.buffer(body, reply.raw, isWriteResult) : body
  const bytes = countBytes(buffered)
  const coding = selectCoding(reply, type, bytes)
  if (coding !== undefined && reply.request.method === 'HEAD') return sendCodedHead(reply, type, coding)
  if (buffered instanceof StagedBody) {
    // A stream that fails is lost, so the result of a write does without an encoder.
    if (coding !== undefined && !isWriteResult) return sendCodedStream(reply, type, buffered.stream(), coding)
    setHeader(reply, 'content-length', String(bytes))
    return sendStream(reply, type, buffered.stream())
  }
  if (coding !== undefined) return sendCodedBody(reply, type, { body: buffered, bytes, coding })
  writeBody(reply, type, buffered, bytes)
  return undefined
}

function countBytes(body: ResponseBody): number {
  return typeof body === 'string' ? Buffer.byteLength(body) : body.length
}

function writeBody(reply: FastifyReply, type: string, body: JsonContent, bytes: number): void {
  const { raw } = reply
  const headers = buildHeaderList(reply)
  headers.push('content-type', type, 'content-length', String(bytes))
  raw.writeHead(raw.statusCode, headers)
  // If each character is one byte, Node need not look for others.
  raw.write(body, typeof body === 'string' && bytes === body.length ? 'latin1' : 'utf8')
  process.nextTick(endResponse, raw)
}

/** Types whose content is text. Others are compressed already, or unknown. */
const TEXT_TYPE = /^(?:text\/|application\/(?:[\w.+-]*json|javascript|yaml)\b|image\/svg)/

/** The coding of a body in this response; undefined for none. */
export function selectCoding(reply: FastifyReply, type: string, bytes: number): Coding | undefined {
  const accept = reply.request.headers['accept-encoding']
  if (accept === undefined || reply.server.compressor === null) return undefined
  const { coding, refusesIdentity } = chooseCoding(accept)
  if (coding === undefined || bytes === 0) return undefined
  if (bytes < MIN_COMPRESSED_BYTES && !refusesIdentity) return undefined
  return TEXT_TYPE.test(type) && !isNoStore(reply) && !isCoded(reply) ? coding : undefined
}

/** Responses with secrets are not compressed: their size would tell whether a text that an attacker chooses equals part of the secret (BREACH). */
function isNoStore(reply: FastifyReply): boolean {
  const headers = getCommonHeaders(reply)
  return headers[findName(headers, 'cache-control') + 1] === 'no-store'
}

function isCoded({ ownHeaders }: FastifyReply): boolean {
  return ownHeaders !== null && findName(ownHeaders, 'content-encoding') >= 0
}

function setCoding(reply: FastifyReply, coding: Coding): void {
  setHeader(reply, 'content-encoding', coding)
  const own = reply.ownHeaders ?? []
  const etag = own[findName(own, 'etag') + 1]
  if (findName(own, 'etag') >= 0 && etag !== undefined)
    setHeader(reply, 'etag', addCodingToEtag(etag, coding))
}

interface CodedBody {
  readonly body: JsonContent
  readonly bytes: number
  readonly coding: Coding
}

/** The response waits for another thread, so Fastify leaves it alone. A body that cannot be compressed is sent as it is. */
function sendCodedBody(reply: FastifyReply, type: string, { body, bytes, coding }: CodedBody): SentReply {
  const { raw, server } = reply
  reply.hijack()
  void compressBody(server, { body, bytes, coding })
    .then((compressed) => {
      if (raw.destroyed) return
      if (!compressed) {
        writeBody(reply, type, body, bytes)
        return
      }
      server.responseBuffer.resize(raw, compressed.length)
      setCoding(reply, coding)
      writeBody(reply, type, compressed, compressed.length)
    })
    .catch((error: unknown) => {
      raw.destroy(error instanceof Error ? error : undefined)
    })
  return undefined
}

/** Undefined if the body cannot be compressed. */
async function compressBody(
  { compressor }: FastifyInstance,
  { body, bytes, coding }: CodedBody,
): Promise<Buffer | undefined> {
  try {
    return await compressor?.compress(body, coding, bytes)
  } catch {
    // The body is still complete. A client that gets an error instead would repeat a write.
    return undefined
  }
}

/** Without `Content-Length`: only compressing the body would tell it. */
function sendCodedHead(reply: FastifyReply, type: string, coding: Coding): SentReply {
  const { raw } = reply
  setCoding(reply, coding)
  const headers = buildHeaderList(reply)
  headers.push('content-type', type)
  raw.writeHead(raw.statusCode, headers)
  raw.end()
  return undefined
}

/** Sends the stream uncompressed if too many others are being compressed. */
export function sendCodedStream(
  reply: FastifyReply,
  type: string,
  stream: Readable,
  coding: Coding,
): SentReply {
  const encoder = reply.server.compressor?.openStream(coding)
  if (!encoder) return sendStream(reply, type, stream)
  setCoding(reply, coding)
  // Fastify reports the error of the encoder, which is also that of the stream.
  pipeline(stream, encoder, () => undefined)
  return sendStream(reply, type, encoder)
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

/** Sends a body with its ETag, or 304 if the client has the body already. */
export function sendCacheable(reply: FastifyReply, type: string, body: JsonContent, etag: string): SentReply {
  const ifNoneMatch = reply.request.headers['if-none-match']
  if (ifNoneMatch !== undefined) {
    const held = findHeldEtag(ifNoneMatch, etag, selectCoding(reply, type, countBytes(body)))
    if (held !== undefined) {
      setHeader(reply, 'etag', held)
      return sendEmpty(reply, 304)
    }
  }
  setHeader(reply, 'etag', etag)
  return sendBody(reply, type, body)
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
