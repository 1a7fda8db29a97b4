import type { FastifyInstance } from 'fastify'
import { Refusal } from '../errors.js'
import { isObject } from '../model/value.js'

/** Far beyond any record, and far below what would exhaust the stack of whoever walks through the value. */
const MAX_DEPTH = 1_000

type Parse = (text: string) => unknown

const decoder = new TextDecoder('utf-8', { fatal: true })

/** JSON bodies only; Fastify's own parsers would take more, and replace what is no UTF-8. */
export function acceptJson(server: FastifyInstance): void {
  const parse = makeParser(server)
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      checkCharset(request.headers['content-type'])
      checkEncoding(request.headers['content-encoding'])
      done(null, readJson(parse, body as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })
}

/** On the login paths: what begins with `{` is JSON whatever its content type says, all else is a form. */
export function acceptCredentials(server: FastifyInstance): void {
  const parse = makeParser(server)
  server.removeAllContentTypeParsers()
  // Fastify refuses a content type that it cannot read before any parser sees the body.
  server.addHook('onRequest', (request, _, done) => {
    delete request.raw.headers['content-type']
    done()
  })
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_, body, done) => {
    try {
      done(null, readCredentials(parse, body as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })
}

function readCredentials(parse: Parse, body: Buffer): unknown {
  const text = body.toString('latin1').trimStart()
  if (text.startsWith('{')) return readJson(parse, body)
  return Object.fromEntries(new URLSearchParams(body.toString('utf8')))
}

/** Refuses `__proto__` and `constructor.prototype`, wherever they stand. */
function makeParser(server: FastifyInstance): Parse {
  const parse = server.getDefaultJsonParser('error', 'error')
  return (text) => {
    let value: unknown
    void parse(undefined as never, text, (error, parsed) => {
      if (error) throw error
      value = parsed
    })
    return value
  }
}

function readJson(parse: Parse, body: Buffer): unknown {
  if (body.length === 0) return undefined
  let text: string
  try {
    text = decoder.decode(body)
  } catch (cause) {
    throw new Refusal('bad-request', 'The body is not valid UTF-8', { cause })
  }
  let value: unknown
  try {
    value = parse(text)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : ''
    if (reason.includes('prototype')) {
      throw new Refusal('bad-request', 'The body holds __proto__ or constructor.prototype as a key', {
        cause,
      })
    }
    const position = /position \d+/.exec(reason)?.[0]
    throw new Refusal('bad-request', `The body is not valid JSON${position ? ` at ${position}` : ''}`, {
      cause,
    })
  }
  refuseDeep(value)
  return value
}

function refuseDeep(value: unknown): void {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH)
      throw new Refusal('bad-request', `The body is nested deeper than ${MAX_DEPTH} levels`)
    level = level.flatMap((item): unknown[] =>
      typeof item === 'object' && item !== null ? Object.values(item) : [],
    )
  }
}

function checkCharset(contentType = ''): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(contentType)?.[1]
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw new Refusal('media-type', 'JSON is sent as UTF-8 here')
  }
}

function checkEncoding(encoding: string | undefined): void {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Refusal('media-type', 'Compressed bodies are not taken here')
  }
}

/** The `data` of a request body. */
export function dataOf(body: unknown): unknown {
  if (!isObject(body) || !isObject(body['data'])) {
    throw new Refusal('bad-request', 'The body must be a JSON object with an object in "data"')
  }
  return body['data']
}
