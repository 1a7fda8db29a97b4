// Every kind of client gets the same answers: a cookie, an API key, a browser, and a cookie behind a proxy.
import type http from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { withBrokenConnections, type BrokenConnection } from '../mutants/connections.js'
import { onEngineOfTier, PASSWORD } from '../targets.js'
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
import { CONTACTS, KINDS, NOTES, startStormService, type Client, type StormService } from './storm-service.js'

/** Headers that say who sends a request, or from where. A request that has one of them is sent as it is. */
const OWN_HEADERS = ['authorization', 'api-key', 'origin', 'sec-fetch-site', 'host']
const ADDED = ',"quick":true'

/** The answer without values that differ from answer to answer. Only a proxy tells that the client uses https. */
function told({ status, headers, text }: Answer): string {
  const own = {
    ...{ date: undefined, 'x-request-id': undefined, 'content-length': undefined, etag: undefined },
    ...{ 'strict-transport-security': undefined, 'x-commit-seq': undefined },
    // A browser accepts compressed answers. The location of a new record ends with its id.
    ...{ 'content-encoding': undefined, location: headers.location?.replace(/\d+$/, '<id>') },
  }
  const body = text.replaceAll(String(headers['x-request-id']), '<id>')
  return JSON.stringify({ status, headers: { ...headers, ...own }, body })
    .replace(/(\\?"(?:id|entityId)\\?":|test\.Note |id )\d+/g, '$1<id>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<moment>')
}

function omit(headers: Readonly<Record<string, string>>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name))
}

onEngineOfTier((engine) => {
  let service: StormService
  let cookie: string
  let guest: string

  beforeAll(async () => {
    service = await startStormService(engine)
    const { app, url } = service.service
    cookie = await openSession(url)
    await addUser(app, { username: 'guest', password: PASSWORD, roles: [] })
    guest = await openSession(url, {}, credentials('guest'))
    const user = asUser(url, cookie)
    const names = ['Ada', 'Жанна', 'a "quoted"\n\u0007name', '😀']
    for (const firstName of names) await user.create('crm.Contact', { firstName, phones: ['1'] })
    await user.create('test.Note', { title: 'one' })
  })
  afterAll(async () => {
    await service.close()
  })

  /** The same request by another kind of client. A request with credentials of its own keeps them. */
  const asKind = ({ headers = {}, ...request }: Sent, client: Client): Sent => {
    const { cookie: own, ...others } = headers
    const { cookie: its, 'api-key': key, ...added } = client.headers
    if (own === cookie && !OWN_HEADERS.some((name) => name in others))
      return {
        ...request,
        headers: { ...added, ...(key === undefined ? { cookie: its } : { 'api-key': key }), ...others },
      }
    const isProxied = client.kind === 'proxy'
    return { ...request, headers: { ...(isProxied ? added : {}), ...headers } }
  }

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

  test('every kind of client gets the same answer to every read', async () => {
    for (const request of requests()) {
      const expected = told(await send(service.service.url, request))
      for (const kind of KINDS) {
        const client = service.clients[kind]
        const answer = told(await send(client.url, asKind(request, client)))
        expect(answer, `${kind} ${JSON.stringify(request)}`).toEqual(expected)
      }
    }
  })

  test('every kind of client gets the same answer to every write', async () => {
    const user = asUser(service.service.url, cookie)
    const make = async () => only(await user.create('test.Note', { title: 'equal' })).id
    const plain = writes(await make())
    const answers: string[] = []
    for (const request of plain) answers.push(told(await send(service.service.url, request)))
    for (const kind of KINDS) {
      const client = service.clients[kind]
      for (const [index, request] of writes(await make()).entries()) {
        const answer = told(await send(client.url, asKind(request, client)))
        expect(answer, `${kind} ${JSON.stringify(request)}`).toEqual(answers[index])
      }
    }
  })

  const MUTANTS: readonly (readonly [what: string, spoil: (answer: string) => string])[] = [
    ['omits a header', (answer) => answer.replace(/x-content-type-options: [^\r]*\r\n/i, '')],
    [
      'adds a key',
      (answer) =>
        answer
          .replace(
            /content-length: (\d+)/i,
            (_, length) => `content-length: ${Number(length) + ADDED.length}`,
          )
          .replace('"status":0', `"status":0${ADDED}`),
    ],
  ]
  test.for(MUTANTS)('the mutant that %s for one kind of client is caught', async ([, spoil]) => {
    const { url } = service.service
    const request = { path: `${NOTES}/1`, headers: { cookie } }
    const broken: BrokenConnection = async ({ head, body }, ask) => {
      const answer = await ask(Buffer.concat([Buffer.from(head), body]))
      return Buffer.from(spoil(answer.toString('latin1')), 'latin1')
    }
    const alone = { ...request, headers: { cookie, connection: 'close' } }
    const [spoilt, right] = [
      await withBrokenConnections(url, broken, (other) => send(other, alone)),
      await send(url, alone),
    ]
    expect(told(spoilt)).not.toEqual(told(right))
  })

  test('a session that ends is rejected with the next request, also behind a proxy', async () => {
    for (const kind of ['cookie', 'browser', 'proxy'] as const) {
      const { url, headers } = service.clients[kind]
      const others = omit(headers, 'cookie')
      const user = asUser(url, await openSession(url, others))
      for (let times = 0; times < 3; times++) expect((await user.get(`${NOTES}/1`, others)).status).toBe(200)
      await user.get('/logout', others)
      expect((await user.get(`${NOTES}/1`, others)).status).toBe(401)
    }
  })

  test('every kind of client reads the latest version after every write', async () => {
    for (const kind of KINDS) {
      const { url, headers } = service.clients[kind]
      const path = await service.createNote()
      for (let version = 0; version < 20; version++) {
        const title = `note ${version}`
        const body = JSON.stringify({ data: { version, title } })
        const type = { 'content-type': 'application/json' }
        expect(
          (await send(url, { method: 'POST', path, headers: { ...headers, ...type }, body })).status,
        ).toBe(200)
        expect((await send(url, { path, headers })).text).toContain(
          `"version":${version + 1},"title":"${title}"`,
        )
      }
    }
  })

  test('the rate limit applies to every kind of client', async () => {
    for (const kind of KINDS) {
      const trustProxy = kind === 'proxy' ? { trustProxy: ['127.0.0.1'] } : {}
      await withServer(service.service, { rateLimitPerMinute: 10, ...trustProxy }, async (url) => {
        const { headers } = service.clients[kind]
        const others = omit(headers, 'host')
        const statuses: number[] = []
        for (let times = 0; times < 13; times++)
          statuses.push((await send(url, { path: `${NOTES}/1`, headers: others })).status)
        expect(statuses, kind).toEqual([...Array<number>(10).fill(200), 429, 429, 429])
      })
    }
  })
})
