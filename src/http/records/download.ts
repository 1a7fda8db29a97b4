// Sends the content of a binary field, whole or in part (RFC 9110, Range).
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FileMetadata } from '../../model/catalog/file-metadata.js'
import { createRangeError } from '../../service/records/files.js'
import type { ByteRange, Download } from '../../wire.js'
import { findHeldEtag } from '../response/content-coding.js'
import { replaceHeader, sendEmpty, sendStream, setHeader, type SentReply } from '../response/send.js'

/** One range: `bytes=0-99`, `bytes=100-` or `bytes=-50`. Other units and several ranges do not match, and get the whole file. */
const RANGE_PATTERN = /^bytes[ \t]*=[ \t]*(?:(\d+)-(\d*)|-(\d+))[ \t]*$/i

/** Chooses the range of a request. Undefined if the response has the whole file, or no content. */
export function chooseRange({ method, headers }: FastifyRequest, file: FileMetadata): ByteRange | undefined {
  const { range, 'if-none-match': ifNoneMatch, 'if-range': ifRange } = headers
  // Only GET has ranges. A client that has the file already gets 304.
  if (range === undefined || method !== 'GET' || isCurrent(ifNoneMatch, file)) return undefined
  // The client has the first part of another file: it needs the whole one.
  if (ifRange !== undefined && String(ifRange).trim() !== buildEtag(file)) return undefined
  return parseRange(range, file.size)
}

/** Undefined for a header that must be ignored. */
function parseRange(header: string, size: number): ByteRange | undefined {
  const [match, firstText = '', lastText = '', suffixText = ''] = RANGE_PATTERN.exec(header) ?? []
  if (match === undefined) return undefined
  const end = size - 1
  if (suffixText !== '') {
    const suffix = Number(suffixText)
    if (suffix === 0) throw createRangeError(size)
    // No range can name the bytes of an empty file.
    return size === 0 ? undefined : { first: Math.max(0, size - suffix), last: end }
  }
  const [first, last] = [Number(firstText), lastText === '' ? Infinity : Number(lastText)]
  if (last < first) return undefined
  if (first > end) throw createRangeError(size)
  return { first, last: Math.min(last, end) }
}

/** Sends every file as an attachment in a sandbox, so that its content cannot run as a page of this origin. */
export function sendFile(request: FastifyRequest, reply: FastifyReply, file: Download): SentReply {
  const content = file.content instanceof Readable ? file.content : Readable.from(file.content)
  const { range, size } = file
  setHeader(reply, 'etag', buildEtag(file))
  replaceHeader(reply, 'content-security-policy', "sandbox; default-src 'none'")
  if (isCurrent(request.headers['if-none-match'], file)) {
    content.destroy()
    return sendEmpty(reply, 304)
  }
  setHeader(reply, 'accept-ranges', 'bytes')
  setHeader(reply, 'content-length', String(range ? range.last - range.first + 1 : size))
  setHeader(reply, 'content-disposition', buildContentDisposition(file.name))
  if (range) setHeader(reply, 'content-range', `bytes ${range.first}-${range.last}/${size}`)
  if (request.method !== 'HEAD') return sendStream(reply.code(range ? 206 : 200), file.type, content)
  content.destroy()
  setHeader(reply, 'content-type', file.type)
  return sendEmpty(reply, 200)
}

function buildEtag({ sha256 }: FileMetadata): string {
  return `"${sha256}"`
}

function isCurrent(ifNoneMatch: string | undefined, file: FileMetadata): boolean {
  return findHeldEtag(ifNoneMatch, buildEtag(file), undefined) !== undefined
}

/** Sends the name twice (RFC 6266): in ASCII for old clients, then in UTF-8. */
function buildContentDisposition(name: string): string {
  const asciiName = name.replace(/[^\x20-\x7e]|["\\%]/gu, '_')
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${asciiName}"; filename*=UTF-8''${encoded}`
}
