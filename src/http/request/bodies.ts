import type { FastifyInstance, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { FieldSelection } from '../../model/query/selection.js'
import { isObject } from '../../model/values/value.js'

/** Far deeper than any record, and far shallower than the depth at which a recursive walk exhausts the stack. */
const MAX_BODY_DEPTH = 1_000

export const MERGE_PATCH = 'application/merge-patch+json'

const bodyDecoder = new TextDecoder('utf-8', { fatal: true })

/** Accepts JSON bodies only. Fastify's own parsers accept other types, and replace bytes that are not UTF-8. */
export function acceptJson(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  server.addContentTypeParser(
    ['application/json', MERGE_PATCH],
    { parseAs: 'buffer' },
    (request, body, done) => {
      try {
        if (isMergePatch(request) && request.method !== 'PATCH')
          throw new VersoError(
            'media-type',
            `${MERGE_PATCH} is accepted for PATCH only: send the body as application/json`,
          )
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

/** Enough for a user name and a password. An unauthenticated client cannot make the service read more. */
export const MAX_CREDENTIAL_BYTES = 16_384

/** Accepts any content type on the login paths: a body that begins with `{` is JSON, any other body is a form. */
export function acceptCredentials(server: FastifyInstance, bodyLimitBytes: number): void {
  server.removeAllContentTypeParsers()
  // Fastify rejects a malformed content type before it calls a parser.
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

/** Parses a body, or one part of a multipart body. */
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
  // Nearly all bodies contain no marker. Visiting every object takes longer than parsing the text.
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

/** Expects valid JSON. */
function isJsonTooDeep(text: string): boolean {
  // Each level takes at least two characters.
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

/** Returns the index of the closing quote of the string that begins at `start`. */
function findStringEnd(text: string, start: number): number {
  let at = start + 1
  while (text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}

/** A key that reaches a prototype contains one of these. An escape (`\u`) may spell any key. */
const PROTOTYPE_MARKERS = ['__proto__', 'constructor', '\\u']

/** Visits the value level by level, because recursion could exhaust the stack. */
function refusePrototypeKeys(value: unknown): void {
  let level: unknown[] = [value]
  while (level.length > 0) {
    const next: unknown[] = []
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue
      if (hasPrototypeKey(item))
        throw new VersoError(
          'bad-request',
          'The body has the key __proto__ or constructor.prototype: remove it',
        )
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
    throw new VersoError('media-type', 'JSON must be encoded as UTF-8: send charset=utf-8, or no charset')
  }
}

export function refuseContentEncoding(encoding: string | undefined): void {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new VersoError(
      'media-type',
      'Compressed request bodies are not supported: send the body without Content-Encoding',
    )
  }
}

export function createPatchTypeError(cause?: unknown): VersoError {
  return new VersoError('media-type', `Send the body of a PATCH as ${MERGE_PATCH}`, { cause })
}

/** Returns the body of a PATCH: the fields to change, without an envelope. */
export function readPatch(request: FastifyRequest): unknown {
  if (!isMergePatch(request)) throw createPatchTypeError()
  if (isObject(request.body)) return request.body
  throw new VersoError('bad-request', 'The body of a PATCH must be a JSON object with the fields to change')
}

/** Returns the object in `data` of a request body. */
export function readDataObject(body: unknown): unknown {
  if (!isObject(body) || !isObject(body['data'])) {
    throw new VersoError('bad-request', 'The body must be a JSON object with an object in "data"')
  }
  return body['data']
}

/** Returns the list in `records`; it has at least one element. */
export function readRecordList(body: unknown): readonly unknown[] {
  const records = isObject(body) ? body['records'] : undefined
  if (Array.isArray(records) && records.length > 0) return records
  throw new VersoError(
    'bad-request',
    'The body must be a JSON object with a list of at least one record in "records"',
  )
}

/** Reads the optional selection of fields for the response. */
export function readFieldSelection(body: unknown): FieldSelection | undefined {
  if (!isObject(body)) return undefined
  const { fields = null, related = null } = body
  return fields === null && related === null ? undefined : { fields, related }
}
