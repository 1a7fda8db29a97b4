// The fast path answers exactly like the routes; all other requests go to the routes.
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { StagedBody, ResponseBuffer } from '../../src/http/response/response-buffer.js'
import { createHostCheck } from '../../src/http/route/origin.js'
import { createRequestLimits } from '../../src/http/route/limits.js'
import { STRICT } from '../../src/http/compat/protocol.js'
import { createRequestLogger } from '../../src/http/connection/request-log.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { shortReads } from '../../src/http/short-reads.js'
import { withShortWay, type Listed, type FastPathReader } from '../../src/http/short-way.js'
import { shortWrites } from '../../src/http/short-writes.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { computeMemoryLimit } from '../../src/service/context/answer-limits.js'
import { onEveryEngine, PASSWORD, startService, type Service } from '../targets.js'
import {
  asUser,
  credentials,
  only,
  openSession,
  send,
  withServer,
  type Answer,
  type Sent,
} from './exchange.js'

const CONTACTS = '/ws/rest/crm.Contact'
const NOTES = '/ws/rest/test.Note'
/** A trusted proxy disables the fast path. */
const ROUTES_ONLY = { trustProxy: ['10.1.2.3'] }

function told({ status, headers, text }: Answer): unknown {
  const own = { date: undefined, 'x-request-id': undefined, 'content-length': undefined }
  const body = text.replaceAll(String(headers['x-request-id']), '<id>')
  return { status, headers: { ...headers, ...own }, body }
}

onEveryEngine((engine) => {
  let service: Service
  let cookie: string
  let guest: string

  beforeAll(async () => {
    service = await startService(engine)
    cookie = await openSession(service.url)
    await addUser(service.app, { username: 'guest', password: PASSWORD, roles: [] })
    guest = await openSession(service.url, {}, credentials('guest'))
    const user = asUser(service.url, cookie)
    const names = ['Ada', 'Жанна', 'a "quoted"\n\u0007name', '😀']
    for (const firstName of names) await user.create('crm.Contact', { firstName, phones: ['1'] })
    await user.create('test.Note', { title: 'one' })
  })
  afterAll(async () => {
    await service.close()
  })

  const requests = (): readonly Sent[] => {
    const as = (headers: http.OutgoingHttpHeaders) => ({ headers: { cookie, ...headers } })
    const paths = [
      ...[1, 2, 3, 4, 99, 0, -1].map((id) => `${CONTACTS}/${id}`),
      ...[`${NOTES}/1`, `${NOTES}/1/`, `${NOTES}/01`, `${NOTES}/1?`, `${NOTES}/1?asOf=2020-01-01`],
      ...[`${NOTES}/%31`, `/ws//rest/test.Note/1`, `/ws/rest/test.Nothing/1`, `${NOTES}/1/history`],
      ...[`${NOTES}/99999999999999999`, `/ws/rest//1`, `/ws/rest/1`, `${NOTES}/1#x`, NOTES],
      ...[
        'offset=0&limit=2',
        'limit=2',
        'limit=2&offset=1',
        'offset=99',
        'limit=0',
        'offset=300&limit=7',
        `offset=2&limit=2&after=${btoa('[2]')}`,
        `offset=2&limit=1&after=${btoa('[2]')}`,
      ].flatMap((query) => [`${CONTACTS}?${query}`, `${NOTES}?${query}`]),
      ...[
        'limit=1&limit=2',
        'offset=-1',
        'limit=x',
        'limit=2&x=1',
        'limit=2&filter=id>1',
        'offset=%31',
        'offset=2&limit=2&after=x',
        `offset=2&limit=2&after=${btoa('["2"]').replaceAll('=', '')}`,
        `offset=2&limit=2&after=${btoa('[2]')}&after=${btoa('[2]')}`,
        'limit=9007199254740993',
      ].map((query) => `${NOTES}?${query}`),
    ]
    return [
      ...paths.map((path) => ({ path, ...as({}) })),
      ...['HEAD', 'DELETE', 'OPTIONS', 'TRACE'].map((method) => ({ method, path: `${NOTES}/99`, ...as({}) })),
      { path: `${NOTES}/1` },
      { path: `${NOTES}/1`, headers: { cookie: guest } },
      { path: `${NOTES}/1`, headers: { cookie: 'JSESSIONID=x' } },
      { path: `${NOTES}/1`, headers: { cookie: `a=b; ${cookie}; c=d` } },
      { path: `${NOTES}/1`, ...as({ 'api-key': 'vk_wrong' }) },
      { path: `${NOTES}/1`, ...as({ authorization: 'Bearer wrong' }) },
      { path: `${NOTES}/1`, ...as({ authorization: 'Basic YTpi' }) },
      { path: `${NOTES}/1`, ...as({ 'if-none-match': '*' }) },
      { path: `${NOTES}/1`, ...as({ origin: 'https://elsewhere.example' }) },
      { path: `${NOTES}/1`, ...as({ host: 'elsewhere.example' }) },
      { path: `${NOTES}/1`, ...as({ accept: 'application/problem+json' }) },
      { path: `${NOTES}/1`, ...as({ 'sec-fetch-site': 'cross-site' }) },
      { path: `${NOTES}/1`, ...as({ 'content-type': 'application/json' }), body: '{}' },
    ]
  }

  /** Writes to a note, which is at version 0. */
  const writes = (id: number): readonly Sent[] => {
    const as = (headers: http.OutgoingHttpHeaders = {}) => ({
      headers: { cookie, 'content-type': 'application/json', ...headers },
    })
    const text = (data: unknown, more: object = {}) => JSON.stringify({ data, ...more })
    const [put, post] = [
      { method: 'PUT', path: NOTES },
      { method: 'POST', path: `${NOTES}/${id}` },
    ]
    const change = text({ version: 0, title: 'changed "é"' })
    return [
      { ...put, ...as(), body: text({ title: 'new' }) },
      { ...put, ...as(), body: text({ title: 7, nothing: 1 }) },
      { ...put, ...as(), body: text({ id: 1, title: 'x' }) },
      { ...post, ...as(), body: change },
      { ...post, ...as(), body: change },
      { ...post, ...as(), body: text({ version: 1, title: null }) },
      { ...post, ...as(), body: text({ title: 'x' }) },
      { ...post, path: `${NOTES}/99`, ...as(), body: change },
      // The routes handle all of the following.
      { ...put, ...as(), body: text([]) },
      { ...put, ...as(), body: '{"data":{"title":"x"' },
      { ...put, ...as(), body: Buffer.from([0x7b, 0xff, 0x7d]) },
      { ...put, ...as(), body: text({ title: 'x' }, { fields: ['title'] }) },
      { ...put, ...as(), body: JSON.stringify({ records: [{ title: 'x' }] }) },
      { ...put, ...as(), body: text({ title: 'x'.repeat(20_000) }) },
      { ...put, ...as({ 'content-type': 'text/plain' }), body: text({ title: 'x' }) },
      { ...put, ...as({ 'content-type': 'application/json; charset=latin1' }), body: text({ title: 'x' }) },
      { ...put, ...as({ prefer: 'merge=fields' }), body: text({ title: 'x' }) },
      { ...put, ...as({ origin: 'https://elsewhere.example' }), body: text({ title: 'x' }) },
      { ...put, ...as({ 'sec-fetch-site': 'cross-site' }), body: text({ title: 'x' }) },
      { ...put, ...as({ cookie: guest }), body: text({ title: 'x' }) },
      { ...put, ...as({ cookie: '' }), body: text({ title: 'x' }) },
      { ...put, path: '/ws/rest/test.Nothing', ...as(), body: text({ title: 'x' }) },
      { ...put, path: `${NOTES}?x=1`, ...as(), body: text({ title: 'x' }) },
      { ...post, ...as({ 'if-match': '"0"' }), body: text({ title: 'x' }) },
      { ...post, path: `${NOTES}/x`, ...as(), body: change },
      { method: 'PATCH', path: post.path, ...as(), body: '{"version":1}' },
    ]
  }

  test('the fast path answers every write like the routes', async () => {
    const user = asUser(service.url, cookie)
    const make = async () => only(await user.create('test.Note', { title: 'equal' })).id
    const scrub = (answer: unknown) =>
      JSON.stringify(answer)
        .replace(/(\\?"(?:id|entityId)\\?":|test\.Note |id )\d+/g, '$1<id>')
        .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<moment>')
        .replace(/"etag":"[^,]*,/, '')
    await withServer(service, ROUTES_ONLY, async (url) => {
      const [one, other] = [await make(), await make()]
      const [short, routed] = [writes(one), writes(other)]
      for (const [index, request] of short.entries()) {
        const answers = [
          scrub(told(await send(service.url, request))),
          scrub(told(await send(url, routed[index] ?? request))),
        ]
        expect(answers[0], JSON.stringify(request)).toEqual(answers[1])
      }
    })
  })

  test('the fast path answers every read like the routes', async () => {
    await withServer(service, ROUTES_ONLY, async (url) => {
      for (const request of requests()) {
        const [quick, routed] = [await send(service.url, request), await send(url, request)]
        expect(told(quick), JSON.stringify(request)).toEqual(told(routed))
      }
    })
  })

  test('the mutant fast path with a missing header or an additional key is caught', async () => {
    const request = { path: `${NOTES}/1`, headers: { cookie } }
    const spoilt: readonly ((body: string, headers: Listed) => [string, Listed])[] = [
      (body, headers) => [
        body,
        headers.filter((name, index) => name !== 'etag' && headers[index - 1] !== 'etag'),
      ],
      (body, headers) => [body.replace('"status":0', '"status":0,"quick":true'), headers],
    ]
    for (const spoil of spoilt) {
      const { listener } = shortWay((reader) => (request) => {
        const asked = reader(request)
        if (!asked) return undefined
        const answer = async () => {
          const [body, headers] = await asked.answer()
          if (body instanceof StagedBody) throw new Error('this answer is small')
          return spoil(String(body), headers)
        }
        return { ...asked, answer }
      })
      await listening(listener, async (url) => {
        await send(url, request)
        const [quick, routed] = [await send(url, request), await send(service.url, request)]
        expect(told(quick)).not.toEqual(told(routed))
      })
    }
  })

  /** A fast path in front of the routes, with modified readers. */
  const shortWay = (changed: (reader: FastPathReader) => FastPathReader) => {
    const settings = { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1' }
    const { app } = service
    const parts = {
      ...{ app, settings, isStopping: () => false, logRequest: createRequestLogger(app.log) },
      ...{ limits: createRequestLimits(app, settings), checkHost: createHostCheck(settings) },
      errors: { log: app.log, protocol: STRICT, schemes: ['Session'] },
      responseBuffer: new ResponseBuffer(app.staging, computeMemoryLimit(app.settings)),
    }
    const count = { routed: 0 }
    const routing = (request: http.IncomingMessage, response: http.ServerResponse) => {
      count.routed++
      service.server.fastify.routing(request, response)
    }
    const readers = [shortReads(parts), shortWrites(parts)].map(changed)
    return { listener: withShortWay(routing, parts, readers), count }
  }

  const listening = async (listener: http.RequestListener, work: (url: string) => Promise<void>) => {
    const server = http.createServer(listener).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    try {
      // Keeps the session in the cache, however slow this machine is.
      service.clock.standStill()
      await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    } finally {
      server.close()
      server.closeAllConnections()
    }
  }

  test('only simple requests take the fast path', async () => {
    const { listener, count } = shortWay((reader) => reader)
    const ways: Record<string, string> = {}
    await listening(listener, async (url) => {
      await send(url, { path: `${NOTES}/1`, headers: { cookie } })
      for (const request of [...requests(), ...writes(1)]) {
        const before = count.routed
        const { status } = await send(url, request)
        const { method = 'GET', path, headers = {}, body = '' } = request
        if (count.routed === before)
          ways[`${method} ${path} ${status} ${String(body)}`.trim()] = Object.keys(headers).join()
      }
    })
    const reads = Object.keys(ways).filter((way) => way.startsWith('GET'))
    const pages = reads.filter((way) => way.includes('?'))
    const plain = [...[1, 2, 3, 4].map((id) => `GET ${CONTACTS}/${id} 200`), `GET ${NOTES}/1 200`]
    expect(reads).toEqual([...plain, ...pages])
    expect(pages).toHaveLength(16)
    const written = Object.keys(ways).filter((way) => !way.startsWith('GET'))
    expect(written.map((way) => way.split(' ').slice(0, 3).join(' '))).toEqual([
      ...[`PUT ${NOTES} 200`, `PUT ${NOTES} 422`, `PUT ${NOTES} 400`],
      ...[`POST ${NOTES}/1 200`, `POST ${NOTES}/1 409`, `POST ${NOTES}/1 422`, `POST ${NOTES}/1 400`],
      `POST ${NOTES}/99 404`,
    ])
  })

  test('a session that ends is rejected on the fast path with the next request', async () => {
    const short = await openSession(service.url)
    const user = asUser(service.url, short)
    for (let times = 0; times < 3; times++) expect((await user.get(`${NOTES}/1`)).status).toBe(200)
    await user.get('/logout')
    expect((await user.get(`${NOTES}/1`)).status).toBe(401)
  })

  test('the fast path answers the latest version after every write', async () => {
    const user = asUser(service.url, cookie)
    const first = only(await user.get(`${NOTES}/1`)).version
    for (let version = first; version < first + 20; version++) {
      const title = `note ${version}`
      expect((await user.ask('POST', `${NOTES}/1`, { version, title })).status).toBe(200)
      expect((await user.get(`${NOTES}/1`)).text).toContain(`"version":${version + 1},"title":"${title}"`)
    }
  })

  test('the rate limit applies on the fast path, too', async () => {
    await withServer(service, { rateLimitPerMinute: 10 }, async (url) => {
      const statuses: number[] = []
      for (let times = 0; times < 13; times++)
        statuses.push((await asUser(url, cookie).get(`${NOTES}/1`)).status)
      expect(statuses).toEqual([...Array<number>(10).fill(200), 429, 429, 429])
    })
  })
})
