// Ids that a proxy or a client gives to a request: X-Request-Id and traceparent.
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { importMutantServer } from '../mutants/request-ids.js'
import { onEngineOfTier, startService, type Service } from '../targets.js'
import { envelope, send } from './exchange.js'

const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

onEngineOfTier((engine) => {
  let service: Service
  let lines: string[] = []
  beforeAll(async () => {
    const sink = new Writable({
      write: (chunk, _, done) => {
        lines.push(String(chunk))
        done()
      },
    })
    service = await startService(engine, { log: pino({}, sink) })
  })
  afterAll(() => service.close())

  /** Sends a request without a session. Returns the id in the header and in the body, and the line of the log. */
  const request = async (headers: Readonly<Record<string, string | string[]>>, url = service.url) => {
    lines = []
    const answer = await send(url, { path: '/ws/rest/crm.Contact', headers })
    await expect.poll(() => lines.filter((line) => line.includes('"msg":"request"')).length).toBe(1)
    const [line = ''] = lines.filter((each) => each.includes('"msg":"request"'))
    const logged = JSON.parse(line) as Record<string, unknown>
    expect([envelope(answer).data['requestId'], logged['requestId']]).toEqual([
      answer.headers['x-request-id'],
      answer.headers['x-request-id'],
    ])
    return { id: answer.headers['x-request-id'] as string, logged, line }
  }

  test.for(['7', 'Root=1-67891233-abcdef012345678912345678', '"}{,\\', 'x'.repeat(128)])(
    'the id %s of a client is the id of the request in headers, errors and log',
    async (id) => {
      expect((await request({ 'x-request-id': id })).id).toBe(id)
    },
  )

  test.for([['two words'], ['x'.repeat(129)], [''], ['caf\u00e9'], ['a\tb'], ['a', 'b']])(
    'an invalid id %j is replaced',
    async (ids) => {
      expect((await request({ 'x-request-id': ids.length > 1 ? ids : (ids[0] ?? '') })).id).toMatch(UUID)
    },
  )

  test('an id with quotes and braces adds no field to the log', async () => {
    const { logged, line } = await request({ 'x-request-id': '","user":"root","x":"' })
    expect(logged['requestId']).toBe('","user":"root","x":"')
    expect([logged['user'], line.trim().split('\n').length]).toEqual([undefined, 1])
  })

  test.for([
    [`00-${TRACE}-${PARENT}-01`, TRACE],
    [`01-${TRACE}-${PARENT}-00-more`, TRACE],
    [`00-${TRACE}-${PARENT}-01-more`, undefined],
    [`00-${TRACE}-${PARENT}-01-`, undefined],
    [`ff-${TRACE}-${PARENT}-01`, undefined],
    [`00-${'0'.repeat(32)}-${PARENT}-01`, undefined],
    [`00-${TRACE}-${'0'.repeat(16)}-01`, undefined],
    [`00-${TRACE.toUpperCase()}-${PARENT}-01`, undefined],
    ['nonsense', undefined],
  ] as const)('the log line of a request with traceparent %s has the trace id %s', async ([parent, id]) => {
    const { logged } = await request({ traceparent: parent })
    expect(logged['traceId']).toBe(id)
  })

  test.for([
    ['ids of clients are ignored', { 'x-request-id': '7' }, { id: expect.stringMatching(UUID) as string }],
    ['ids of clients are not checked', { 'x-request-id': 'two words' }, { id: 'two words' }],
    [
      'version 00 of a traceparent may have more parts',
      { traceparent: `00-${TRACE}-${PARENT}-01-more` },
      { logged: { traceId: TRACE } },
    ],
  ] as const)('the mutant in which %s is caught', async ([mistake, headers, expected]) => {
    const { createServer } = await importMutantServer(inject('runFolder'), mistake)
    const settings = { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0 }
    const server = await createServer(service.app, settings)
    const [url] = await server.listen()
    expect(await request(headers, url)).toMatchObject(expected)
    await server.close()
  })
})
