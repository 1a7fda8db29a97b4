// Unknown clients cannot make the service read large bodies or do expensive work: requests are rejected by their headers.
import { fastify } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseJsonBody } from '../../src/http/request/bodies.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { expectError, rawRequest, send, sendRaw, JSON_BODY } from './exchange.js'
import { routesOf } from './routes.js'

const LIMIT = 16_384
const OPEN = ['/callback', '/login.jsp', '/reset?token=t', '/setup?token=token']
/** A large body that is announced and never sent. */
const LARGE = { ...JSON_BODY, 'content-length': '1000000' }

/** The requests without a response before their body arrives. */
async function waitingIn(url: string, lines: readonly string[]): Promise<string[]> {
  const waiting: string[] = []
  const look = async (line: string) => {
    const { status } = await sendRaw(url, rawRequest(`${line} HTTP/1.1`, LARGE))
    if (status === 0 || status === 408) waiting.push(line)
  }
  await Promise.all(lines.map(look))
  return waiting.sort()
}

onEveryEngine((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine, { setupToken: 'token' })
  })
  afterAll(() => service.close())

  test('every route, even an unknown one, answers an unknown client without waiting for a large body', async () => {
    const routes = [...routesOf(service.server.fastify)]
    const lines = routes.flatMap(([path, methods]) =>
      [...methods]
        .filter((method) => method !== 'GET' && method !== 'HEAD')
        .map((method) => `${method} ${path.replace(':model', 'crm.Contact').replaceAll(/:\w+/g, '1')}`),
    )
    expect(lines.length).toBeGreaterThan(100)
    expect(await waitingIn(service.url, [...lines, 'POST /nothing', 'POST /ws/nothing'])).toEqual([])
  })

  test.for(OPEN)('%s accepts at most 16 KiB, with and without Content-Length', async (path) => {
    const body = (bytes: number) => `{"x":"${'x'.repeat(bytes - 8)}"}`
    const post = (text: string, headers = {}) =>
      send(service.url, { method: 'POST', path, headers: { ...JSON_BODY, ...headers }, body: text })
    const fitting = await post(body(LIMIT))
    expect([400, 401, 404]).toContain(fitting.status)
    expectError(await post(body(LIMIT + 1)), 413, 'too-large')
    const chunk = body(LIMIT + 1)
    const chunked = rawRequest(
      `POST ${path} HTTP/1.1`,
      { ...JSON_BODY, 'transfer-encoding': 'chunked' },
      `${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`,
    )
    expectError(await sendRaw(service.url, chunked), 413, 'too-large')
  })

  test.for(OPEN)(
    '%s rejects an address with too many failed logins before its body arrives',
    async (path) => {
      const insert = 'insert into verso_login_failure (key, since_ms, failures) values (?, ?, ?)'
      await service.app.db.transaction(async (tx) => {
        await tx.run('delete from verso_login_failure')
        await tx.run(insert, ['127.0.0.1', service.clock.now(), 300])
      })
      const head = rawRequest(`POST ${path} HTTP/1.1`, { ...JSON_BODY, 'content-length': '100' })
      const rejected = await sendRaw(service.url, head)
      await service.app.db.transaction((tx) => tx.run('delete from verso_login_failure'))
      expectError(rejected, 429, 'too-many')
    },
  )
})

test('the mutant server that rejects a method in its handler is caught', async () => {
  const server = fastify({
    requestTimeout: 200,
    http: { headersTimeout: 100, connectionsCheckingInterval: 50 },
  })
  server.post('/', async (_, reply) => reply.code(405).send())
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  expect(await waitingIn(url, ['POST /', 'POST /nothing'])).toEqual(['POST /', 'POST /nothing'])
  await server.close()
})

describe('JSON bodies', () => {
  const deep = (levels: number, between = '') => '['.repeat(levels) + between + ']'.repeat(levels)
  const rejected: readonly (readonly [what: string, text: string])[] = [
    ['__proto__', '{"a":[{"__proto__":{}}]}'],
    ['an escaped __proto__', '{"a":[{"\\u005f_proto__":{}}]}'],
    ['constructor.prototype', '{"constructor":{"prototype":{}}}'],
    ['an escaped constructor', '{"con\\u0073tructor":{"prototype":{}}}'],
    ['an escaped prototype', '{"constructor":{"pro\\u0074otype":{}}}'],
    ['1,001 levels', deep(1_001)],
    ['1,001 levels, and brackets in strings', deep(1_001, '"\\"]]]]"')],
    ['1,001 levels after strings', `["]]]","\\\\",${deep(1_000)}]`],
  ]
  const taken: readonly (readonly [what: string, text: string])[] = [
    ['1,000 levels', deep(1_000)],
    ['many brackets in strings', JSON.stringify(['['.repeat(5_000), '\\"'.repeat(5_000)])],
    ['harmless similar words', '{"a":"__proto__","constructor":"prototype","b":"\\u005f"}'],
    ['many adjacent objects', JSON.stringify(Array.from({ length: 2_000 }, () => ({})))],
  ]
  const isRejected = (read: (body: Buffer) => unknown, text: string) => {
    try {
      read(Buffer.from(text))
      return false
    } catch {
      return true
    }
  }

  test.for(rejected)('a JSON body with %s is rejected', ([, text]) => {
    expect(isRejected(parseJsonBody, text)).toBe(true)
  })

  test.for(taken)('a JSON body with %s is accepted', ([, text]) => {
    expect(parseJsonBody(Buffer.from(text))).toEqual(JSON.parse(text))
  })

  test('mutant readers that check less of the text are caught', () => {
    const mutants: readonly ((text: string) => boolean)[] = [
      (text) => text.includes('__proto__') || text.includes('constructor'),
      (text) => text.includes('__proto__') || text.includes('\\u'),
      (text) => text.split('[').length - text.split(']').length > 1_000,
    ]
    for (const looksBad of mutants) {
      const mutant = (body: Buffer) => {
        if (looksBad(body.toString())) return parseJsonBody(body)
        return JSON.parse(body.toString()) as unknown
      }
      expect(rejected.filter(([, text]) => !isRejected(mutant, text))).not.toEqual([])
    }
  })
})
