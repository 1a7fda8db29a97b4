import type { FastifyInstance, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'

/** Far beyond any record, and far below what would exhaust the stack of whoever walks through the value. */
const MAX_BODY_DEPTH = 1_000

export const MERGE_PATCH = 'application/merge-patch+json'

const bodyDecoder = new TextDecoder('utf-8', { fatal: true })

/** JSON bodies only; Fastify's own parsers would take more, and replace what is no UTF-8. */
export function acceptJson(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  server.addContentTypeParser(
    ['application/json', MERGE_PATCH],
    { parseAs: 'buffer' },
    (request, body, done) => {
      try {
        if (isMergePatch(request) && request.method !== 'PATCH')
          throw new VersoError('media-type', `${MERGE_PATCH} is for PATCH: send the body as application/json`)
        requireUtf8Charset(request.headers['content-type'])
        refuseContentEncoding(request.headers['content-encoding'])
        done(null, parseJsonBody(body as Buffer))
      } catch (error) {
        done(error as Error)
      }
    },
  )
}

function isMergePatch({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  return headers['content-type']?.split(';')[0]?.trim().toLowerCase() === MERGE_PATCH
}

/** Names and passwords have no need of more. Anybody may send this much, and somebody unknown is not to cost more than that. */
export const MAX_CREDENTIAL_BYTES = 16_384

/** On the login paths: what begins with `{` is JSON whatever its content type says, all else is a form. */
export function acceptCredentials(server: FastifyInstance, bodyLimitBytes: number): void {
  server.removeAllContentTypeParsers()
  // Fastify refuses a content type that it cannot read before any parser sees the body.
  server.addHook('onRequest', (request, _, done) => {
    delete request.raw.headers['content-type']
    done()
  })
  const bodyLimit = Math.min(bodyLimitBytes, MAX_CREDENTIAL_BYTES)
  server.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit }, (_, body, done) => {
    try {
      done(null, readCredentials(body as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })
}

function readCredentials(body: Buffer): unknown {
  const text = body.toString('latin1').trimStart()
  if (text.startsWith('{')) return parseJsonBody(body)
  return Object.fromEntries(new URLSearchParams(body.toString('utf8')))
}

/** A body, or a part of one. */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined
  let text: string
  try {
    text = bodyDecoder.decode(body)
  } catch (cause) {
    throw new VersoError('bad-request', 'The body is not valid UTF-8', { cause })
  }
  const value = parseJsonText(text)
  if (isJsonTooDeep(text))
    throw new VersoError('bad-request', `The body is nested deeper than ${MAX_BODY_DEPTH} levels`)
  // Nearly all bodies have none of these, and looking at each of their objects takes longer than parsing them.
  if (PROTOTYPE_MARKERS.some((sign) => text.includes(sign))) refusePrototypeKeys(value)
  return value
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    const position = cause instanceof Error ? /position \d+/.exec(cause.message)?.[0] : undefined
    const where = position === undefined ? '' : ` at ${position}`
    throw new VersoError('bad-request', `The body is not valid JSON${where}`, { cause })
  }
}

const QUOTE = '"'.charCodeAt(0)
const BACKSLASH = '\\'.charCodeAt(0)
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Of a text that is JSON. */
function isJsonTooDeep(text: string): boolean {
  // Each level is two characters long at least.
  if (text.length <= 2 * MAX_BODY_DEPTH) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = findStringEnd(text, at)
    else if (code === LIST || code === OBJECT) {
      if (++depth > MAX_BODY_DEPTH) return true
    } else if (code === LIST_END || code === OBJECT_END) depth--
  }
  return false
}

/** Where the string ends that begins here. */
function findStringEnd(text: string, start: number): number {
  let at = start + 1
  while (text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}

/** What a key that reaches for a prototype has in its text; with an escape it may be spelled in any way. */
const PROTOTYPE_MARKERS = ['__proto__', 'constructor', '\\u']

/** Level by level, so that no depth exhausts the stack. */
function refusePrototypeKeys(value: unknown): void {
  let level: unknown[] = [value]
  while (level.length > 0) {
    const next: unknown[] = []
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue
      if (hasPrototypeKey(item))
        throw new VersoError('bad-request', 'The body holds __proto__ or constructor.prototype as a key')
      for (const child of Object.values(item)) if (typeof child === 'object') next.push(child)
    }
    level = next
  }
}

function hasPrototypeKey(item: object): boolean {
  if (Object.hasOwn(item, '__proto__')) return true
  if (!Object.hasOwn(item, 'constructor')) return false
  const { constructor } = item as { constructor: unknown }
  return isObject(constructor) && Object.hasOwn(constructor, 'prototype')
}

function requireUtf8Charset(contentType = ''): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(contentType)?.[1]
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw new VersoError('media-type', 'JSON is sent as UTF-8 here')
  }
}

export function refuseContentEncoding(encoding: string | undefined): void {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new VersoError('media-type', 'Compressed bodies are not taken here')
  }
}

export function createPatchTypeError(cause?: unknown): VersoError {
  return new VersoError('media-type', `Send the body of a PATCH as ${MERGE_PATCH}`, { cause })
}

/** What a PATCH sends: the fields themselves, without an envelope. */
export function readPatch(request: FastifyRequest): unknown {
  if (!isMergePatch(request)) throw createPatchTypeError()
  if (isObject(request.body)) return request.body
  throw new VersoError('bad-request', 'The body of a PATCH must be a JSON object of the fields to change')
}

/** The `data` of a request body. */
export function readDataObject(body: unknown): unknown {
  if (!isObject(body) || !isObject(body['data'])) {
    throw new VersoError('bad-request', 'The body must be a JSON object with an object in "data"')
  }
  return body['data']
}
