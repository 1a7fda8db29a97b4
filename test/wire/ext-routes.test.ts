// Routes of one's own below /ext: who may call them, what they answer, and how they fail.
import { connect } from 'node:net'
import { Writable } from 'node:stream'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { models as fixtures } from '../models.js'
import { HttpClient } from '../http-client.js'
import { grantee, rootOf } from '../permissions/office-fixture.js'
import { onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import {
  addressOf,
  credentials,
  envelope,
  expectError,
  json,
  JSON_BODY,
  openSession,
  rawRequest,
  send,
  sendRaw,
  type Answer,
  type Sent,
} from './exchange.js'
import { answers, checked, createFailing, flat, guarded, notes, system, Waiting } from './ext-plugins.js'

/** A model of which only administrators know. */
const SECRET = {
  file: 'ext.ts',
  definition: defineModel({
    name: 'ext.Secret',
    fields: { amount: { type: 'integer', min: 0 }, code: { type: 'string', required: true } },
  }),
}
const CROSS_SITE = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }

onEveryEngine((engine) => {
  let service: Service
  let cookie: string
  let bobCookie: string
  let log = ''
  const waiting = new Waiting()

  beforeAll(async () => {
    const stream = new Writable({
      write: (chunk: Buffer, _, done) => {
        log += chunk.toString()
        done()
      },
    })
    service = await startService(engine, {
      models: [...fixtures, SECRET],
      routes: [guarded, flat, notes, system, answers, createFailing(waiting), checked],
      http: { basePath: '/app', bodyLimitBytes: 50_000 },
      log: pino({ level: 'info' }, stream),
      expects: ['internal', 'busy'],
    })
    cookie = await openSession(service.url)
    const permissions = [
      { model: 'test.Note', canRead: true, canCreate: true, condition: 'createdBy = :user' },
    ]
    const bob = await grantee(service, permissions)
    bobCookie = bob.client.cookie
  })
  afterAll(() => service.close())

  const ask = async (path: string, { headers, ...more }: Partial<Sent> = {}) =>
    send(service.url, { path, ...more, ...(headers === undefined ? {} : { headers }) })
  const askAs = async (session: string, path: string, { headers, ...more }: Partial<Sent> = {}) =>
    ask(path, { ...more, headers: { cookie: session, ...headers } })
  const post = async (session: string, path: string, body: unknown, headers = {}) =>
    askAs(session, path, {
      method: 'POST',
      headers: { ...JSON_BODY, ...headers },
      body: JSON.stringify(body),
    })
  const statusOf = (answer: Answer) => answer.status

  describe('access', () => {
    test('a route is open to those whom its access names', async () => {
      const sessions = { nobody: '', bob: bobCookie, ada: cookie }
      const seen: Record<string, readonly number[]> = {}
      for (const access of ['public', 'login', 'admin'])
        for (const [who, session] of Object.entries(sessions)) {
          const requests = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) =>
            askAs(session, `/ext/${access}`, { method }),
          )
          seen[`${access} ${who}`] = [...new Set((await Promise.all(requests)).map(statusOf))]
        }
      expect(seen).toEqual({
        'public nobody': [200],
        'public bob': [200],
        'public ada': [200],
        'login nobody': [401],
        'login bob': [200],
        'login ada': [200],
        'admin nobody': [401],
        'admin bob': [403],
        'admin ada': [200],
      })
    })

    test('a public route knows its caller if there is one', async () => {
      expect(json(await ask('/ext/public'))).toEqual({ user: null })
      expect(json(await askAs(cookie, '/ext/public'))).toEqual({
        user: {
          id: expect.any(Number) as number,
          username: USERNAME,
          name: 'Ada',
          roles: ['administrator'],
          isAdmin: true,
        },
      })
      expect(json(await askAs(bobCookie, '/ext/public'))).toMatchObject({ user: { isAdmin: false } })
    })

    test('a page of another site cannot write with the session of its visitor', async () => {
      for (const access of ['public', 'login', 'admin'])
        for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
          const answer = await askAs(cookie, `/ext/${access}`, { method, headers: CROSS_SITE })
          expectError(answer, 403, 'forbidden')
        }
      // Anybody may do this, so a page of another site may too.
      expect((await ask('/ext/public', { method: 'POST', headers: CROSS_SITE })).status).toBe(200)
      expect((await askAs(cookie, '/ext/login', { headers: CROSS_SITE })).status).toBe(200)
      const ada = await HttpClient.login(service.url, USERNAME, PASSWORD)
      const made = await ada.request('POST', '/ws/me/keys', { data: { name: 'partner' } })
      const { data: [{ key }] } = (await made.json()) as { data: [{ key: string }] } // prettier-ignore
      const withKey = await ask('/ext/login', { method: 'POST', headers: { ...CROSS_SITE, 'api-key': key } })
      expect(withKey.status).toBe(200)
    })

    test('another spelling of the path reaches the same guard', async () => {
      for (const path of ['/%65xt/login', '/ext/%6Cogin', '/ext/login/', '/ext/login?a=1']) {
        expectError(await ask(path), 401, 'unauthenticated')
        expect((await askAs(cookie, path)).status, path).toBe(200)
      }
      for (const path of ['/ext//login', '/EXT/login', '/ext/Login', '/ext/x/../login', '/ext%2Flogin'])
        expectError(await ask(path), 404, 'not-found')
    })

    test('every method of a route for all methods is guarded', async () => {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect((await ask('/ext/every', { method })).status, method).toBe(401)
        expect((await askAs(cookie, '/ext/every', { method })).status, method).toBe(200)
      }
    })

    test('routes of nested plugins and of plugins without a scope are guarded', async () => {
      for (const path of ['/ext/nested/deep', '/ext/nested/deeper', '/ext/flat'])
        expectError(await ask(path), 401, 'unauthenticated')
      expectError(await askAs(bobCookie, '/ext/nested/deeper'), 403, 'forbidden')
      expect((await askAs(cookie, '/ext/nested/deeper')).text).toBe('deeper')
      const answer = await askAs(cookie, '/ext/flat')
      expect([json(answer), answer.headers['x-seen-user']]).toEqual([{ flat: true }, USERNAME])
    })

    test('unknown paths and methods are answered with 404 in the envelope', async () => {
      for (const path of ['/ext', '/ext/none', '/ext/login/more'])
        for (const method of ['GET', 'POST', 'OPTIONS']) {
          const answer = await ask(path, { method })
          expectError(answer, 404, 'not-found')
          expect(answer.headers['cache-control']).toBe('no-store')
        }
      expectError(await ask('/ext/text', { method: 'DELETE' }), 404, 'not-found')
    })

    /** Sends the head of a write, does something else, sends the body, and returns the status. */
    const writeSlowly = async (path: string, session: string, meanwhile: () => Promise<unknown>) => {
      const socket = connect(addressOf(service.url))
      const answered = new Promise<string>((resolve) => {
        let received = ''
        socket.on('data', (chunk) => (received += chunk.toString()))
        socket.on('close', () => {
          resolve(received)
        })
      })
      const arrived = new Promise((resolve) => service.server.fastify.server.once('request', resolve))
      const head = { cookie: session, ...JSON_BODY, 'content-length': '2' }
      socket.write(rawRequest(`POST /app${path} HTTP/1.1`, head))
      await arrived
      // The guards have passed the request before this one is answered.
      expect((await askAs(session, path)).status).toBe(200)
      await meanwhile()
      socket.write('{}')
      return Number((await answered).slice(9, 12))
    }

    test('a session that ends while the body arrives is refused', async () => {
      for (const access of ['public', 'login', 'admin']) {
        const session = await openSession(service.url)
        const logOut = async () => askAs(session, '/logout', { method: 'POST' })
        expect(await writeSlowly(`/ext/${access}`, session, logOut), access).toBe(401)
        const other = await openSession(service.url)
        expect(await writeSlowly(`/ext/${access}`, other, async () => Promise.resolve()), access).toBe(200)
      }
    })

    test('a user who ceases to be an administrator while the body arrives is refused', async () => {
      const id = await addUser(service.app, {
        username: 'eve',
        password: PASSWORD,
        roles: ['administrator'],
      })
      const session = await openSession(service.url, {}, credentials('eve'))
      const demote = async () => {
        const { version } = await rootOf(service).read('verso.auth.User', id)
        await rootOf(service).update('verso.auth.User', id, { version, roles: [] })
      }
      expect(await writeSlowly('/ext/admin', session, demote)).toBe(403)
    })
  })

  describe('records', () => {
    test('a route reads and writes with the permissions of its caller', async () => {
      const adas = json(await post(cookie, '/ext/notes', { titles: ['of Ada'] })) as { created: [number] }
      const bobs = json(await post(bobCookie, '/ext/notes', { titles: ['of Bob'] })) as { created: [number] }
      expectError(await askAs(bobCookie, `/ext/notes/${adas.created[0]}`), 404, 'not-found')
      expect(json(await askAs(bobCookie, `/ext/notes/${bobs.created[0]}`))).toMatchObject({ title: 'of Bob' })
      expect(json(await askAs(bobCookie, '/ext/titles'))).toEqual({ total: 1, titles: ['of Bob'] })
      expect((json(await askAs(cookie, '/ext/titles')) as { total: number }).total).toBe(2)
      const { createdBy } = await rootOf(service).read('test.Note', bobs.created[0])
      expect(createdBy).toMatchObject({ name: expect.stringMatching(/^grantee/) as string })
    })

    test('a transaction of a route writes everything or nothing', async () => {
      const before = await rootOf(service).find('test.Note', {})
      const answer = await post(cookie, '/ext/notes', { titles: ['kept?', null] })
      expectError(answer, 422, 'invalid')
      expect(envelope(answer).errors).toEqual({ title: expect.any(String) as string })
      expect((await rootOf(service).find('test.Note', {})).total).toBe(before.total)
    })

    test('without a caller, only asSystem() reads records', async () => {
      const { total } = await rootOf(service).find('test.Note', {})
      expect(json(await ask('/ext/count'))).toEqual({ total })
      expectError(await ask('/ext/mine'), 401, 'unauthenticated')
      expectError(await ask('/ext/ours'), 401, 'unauthenticated')
      expect((await askAs(bobCookie, '/ext/mine')).status).toBe(200)
      expect((await askAs(bobCookie, '/ext/ours')).status).toBe(200)
    })
  })

  describe('an error of a write with all permissions', () => {
    const createHidden = async () => {
      const root = rootOf(service)
      const { id } = (await root.create('test.Note', { title: 'first' })).data
      await root.update('test.Note', id, { version: 0, title: 'a hidden title' })
      return id
    }
    const NAMES = ['stale-public', 'stale-login', 'stale-work-public', 'stale-work-login']

    test('shows a limited user and an anonymous caller its kind, and nothing of the record', async () => {
      const id = await createHidden()
      for (const name of NAMES)
        for (const session of name.endsWith('public') ? ['', bobCookie] : [bobCookie]) {
          const answer = await post(session, `/ext/${name}/${id}`, {})
          expectError(answer, 409, 'conflict')
          expect(answer.text, name).not.toMatch(/theirs|first|hidden/)
          expect(Object.keys(envelope(answer).data)).toEqual(['kind', 'title', 'message', 'requestId'])
        }
    })

    test('shows an administrator the conflict', async () => {
      const id = await createHidden()
      for (const name of NAMES) {
        const answer = await post(cookie, `/ext/${name}/${id}`, {})
        expectError(answer, 409, 'conflict')
        expect(answer.text, name).toContain('a hidden title')
      }
    })

    test('an error at the end of a transaction shows its kind only, and does not say what was changed', async () => {
      const root = rootOf(service)
      const { data: company } = await root.create('rel.Company', { name: 'referenced' })
      await root.create('rel.Person', { name: 'referring', company: { id: company.id } })
      const answer = await post(bobCookie, `/ext/remove-work/${company.id}`, {})
      expectError(answer, 409, 'still-referenced')
      expect(envelope(answer).data.message).toBe(
        'A rule about records that you may not see refused this (still-referenced)',
      )
      const shown = await post(cookie, `/ext/remove-work/${company.id}`, {})
      expect(shown.text).toContain('is still referenced by rel.Person')
    })

    test('about invalid data shows its kind only, and the log has the whole error', async () => {
      for (const name of ['wrong', 'wrong-inside', 'wrong-work']) {
        const answer = await post(bobCookie, `/ext/${name}`, {})
        expectError(answer, 422, 'invalid')
        expect(answer.text, name).not.toMatch(/amount|Secret|code/)
        const line = log.split('\n').find((each) => each.includes(String(envelope(answer).data.requestId)))
        expect(line, name).toMatch(/"reason":"ext.Secret was not written: amount /)
        const shown = await post(cookie, `/ext/${name}`, {})
        expect(shown.text, name).toContain('ext.Secret was not written: amount ')
      }
    })

    test('an error of the route itself keeps its words', async () => {
      const answer = await post(bobCookie, '/ext/own-error', {})
      expectError(answer, 410, 'gone')
      expect(envelope(answer).data.message).toBe('The words of the route')
    })
  })

  describe('answers', () => {
    test('the value of the handler is sent as it is', async () => {
      const seen: Record<string, readonly unknown[]> = {}
      for (const name of ['text', 'bytes', 'stream', 'empty', 'nothing', 'created', 'old', 'moved']) {
        const { status, headers, text } = await ask(`/ext/${name}`)
        seen[name] = [status, headers['content-type'], text]
      }
      expect(seen).toEqual({
        text: [200, 'text/plain; charset=utf-8', 'plain'],
        bytes: [200, 'application/octet-stream', '\u0001\u0002\u0003'],
        stream: [200, 'text/csv', 'a,b'],
        empty: [204, undefined, ''],
        nothing: [200, undefined, ''],
        created: [201, 'application/json; charset=utf-8', '{"id":1}'],
        old: [200, 'application/json; charset=utf-8', '{"old":true}'],
        moved: [303, undefined, ''],
      })
    })

    test('every answer has the headers of the other routes; those of the route win', async () => {
      const other = (await askAs(cookie, '/ws/me')).headers
      const own = [
        'connection',
        'content-length',
        'content-type',
        'date',
        'etag',
        'keep-alive',
        'x-request-id',
      ]
      const expected = Object.entries(other).filter(([name]) => !own.includes(name))
      for (const path of [
        'text',
        'bytes',
        'stream',
        'empty',
        'created',
        'fail/error',
        'fail/verso',
        'none',
      ]) {
        const { headers } = await ask(`/ext/${path}`)
        const { vary, ...rest } = Object.fromEntries(expected)
        expect(headers, path).toMatchObject({ ...rest, 'cache-control': 'no-store' })
        expect(headers['vary']).toContain(vary)
        expect(headers['x-request-id']).toMatch(/^[\w-]{36}$/)
      }
      expect((await ask('/ext/created')).headers['vary']).toMatch(/^X-Own, Cookie, Authorization/)
      expect((await ask('/ext/cached')).headers['cache-control']).toBe('public, max-age=60')
    })

    test('a HEAD request gets the headers of the GET request', async () => {
      const [get, head] = [await ask('/ext/created'), await ask('/ext/created', { method: 'HEAD' })]
      expect([head.status, head.text, head.headers['content-length']]).toEqual([
        201,
        '',
        get.headers['content-length'],
      ])
    })
  })

  describe('failures', () => {
    test('a VersoError keeps its kind; anything else is 500 and leaks nothing', async () => {
      for (const way of ['fail', 'fail-at-once']) {
        expectError(await ask(`/ext/${way}/gone`), 410, 'gone')
        const conflict = await ask(`/ext/${way}/verso`)
        expectError(conflict, 409, 'conflict')
        expect(envelope(conflict).data).toMatchObject({ message: 'Too late', hint: 'try again' })
        for (const name of ['error', 'text', 'nothing', 'bare', 'status', 'unknown', 'bigint', 'details']) {
          const answer = await ask(`/ext/${way}/${name}`)
          expectError(answer, 500, 'internal')
          expect(answer.text + JSON.stringify(answer.headers)).not.toContain('secret')
        }
      }
      const busy = await ask('/ext/fail/retry')
      expectError(busy, 503, 'busy')
      expect(busy.headers).not.toHaveProperty('retry-after')
      for (const name of ['circle', 'stream', 'objects'])
        expectError(await ask(`/ext/fail/${name}`), 500, 'internal')
    })

    test('a defect is logged with its route, its request and its stack', async () => {
      const requestIds: unknown[] = []
      for (const name of ['error', 'text', 'bare', 'unknown'])
        requestIds.push(envelope(await ask(`/ext/fail/${name}`)).data['requestId'])
      const lines = log.split('\n').filter((line) => line.includes('request failed'))
      const found = requestIds.map((id) => lines.find((line) => line.includes(String(id))) ?? '')
      expect(found[0]).toContain('GET /app/ext/fail/error')
      expect(found[0]).toContain('a secret of the route')
      expect(found[0]).toContain('ext-plugins.ts')
      expect(found[1]).toContain('a secret text')
      expect(found[2]).toContain('GET /app/ext/fail/bare failed: threw a value that has no text')
      expect(found[3]).toMatch(/a VersoError has the unknown kind .*secret-kind.*The kinds are .*not-found/)
      expect(found[3]).toContain('a secret of the route')
    })

    test('a hook that took too long is logged with the reason', async () => {
      const answer = await ask('/ext/fail/hook')
      expectError(answer, 500, 'hook-failed')
      const line = log.split('\n').find((each) => each.includes(String(envelope(answer).data['requestId'])))
      expect(line).toMatch(/"level":50.*"reason":"The transaction waited".*"msg":"a hook failed"/)
    })

    test('a client that wants a problem gets one', async () => {
      const answer = await ask('/ext/fail/gone', { headers: { accept: 'application/problem+json' } })
      expect(json(answer)).toMatchObject({ type: 'urn:verso:gone', status: 410 })
    })

    test('malformed and large bodies are refused as on other routes', async () => {
      const put = async (body: string, headers = {}) =>
        askAs(cookie, '/ext/login', { method: 'POST', headers: { ...JSON_BODY, ...headers }, body })
      expectError(await put('{'), 400, 'bad-request')
      expectError(await put('{"__proto__":{"a":1}}'), 400, 'bad-request')
      expectError(
        await put('a=1', { 'content-type': 'application/x-www-form-urlencoded' }),
        415,
        'media-type',
      )
      expectError(await put(JSON.stringify('x'.repeat(60_000))), 413, 'too-large')
      expectError(await put(`${'['.repeat(5_000)}${']'.repeat(5_000)}`), 400, 'bad-request')
    })

    test('a route that does not answer counts as a request in flight; another one goes on', async () => {
      const pending = ask('/ext/wait')
      await waiting.arrived
      expect(service.server.gauges()['requestsInFlight']).toBe(1)
      expect((await ask('/ext/text')).status).toBe(200)
      // This client leaves before its answer.
      const socket = connect(addressOf(service.url))
      const arrived = new Promise((resolve) => service.server.fastify.server.once('request', resolve))
      socket.write(rawRequest('GET /app/ext/wait HTTP/1.1'))
      await arrived
      socket.destroy()
      await expect.poll(() => service.server.gauges()['requestsInFlight']).toBe(1)
      waiting.release()
      expect(json(await pending)).toEqual({ waited: true })
      expect(service.server.gauges()['requestsInFlight']).toBe(0)
    })

    test('a route with a time limit is answered with 503', async () => {
      const answer = await ask('/ext/limited')
      expectError(answer, 503, 'busy')
      expect(answer.headers['retry-after']).toBe('5')
      expect(envelope(answer).data.message).toContain('It is unknown whether it has changed anything')
    })
  })

  describe('schemas', () => {
    const ORDER = '/ext/orders/7?urgent=true&tag=a'
    const order = async (body: unknown, path = ORDER, headers = {}) => post(cookie, path, body, headers)

    test('parameters are converted, bodies are not; defaults are set', async () => {
      const answer = await order({ lines: [{ item: 'a', amount: 2 }] }, ORDER, { 'X-Channel': 'shop' })
      expect([answer.status, json(answer)]).toEqual([
        201,
        {
          customer: 7,
          query: { urgent: true, tag: ['a'] },
          body: { lines: [{ item: 'a', amount: 2 }], isGift: false },
          channel: 'shop',
        },
      ])
    })

    test('all errors of a body are reported by field with 422', async () => {
      const answer = await order({ note: 'too long', lines: [{ amount: '2' }, { item: 1 }], extra: 1 })
      expectError(answer, 422, 'invalid')
      expect(envelope(answer).errors).toEqual({
        note: 'must NOT have more than 5 characters',
        'lines[0].item': 'is required',
        'lines[0].amount': 'must be integer',
        'lines[1].item': 'must be string',
        extra: 'is unknown',
      })
      for (const body of [null, 'text', [], 5]) expectError(await order(body), 422, 'invalid')
      expect(envelope(await order([])).errors).toEqual({ body: 'must be object' })
      expectError(await askAs(cookie, ORDER, { method: 'POST' }), 422, 'invalid')
    })

    test('a large body with many errors is refused by its first error', async () => {
      const answer = await order({ lines: Array.from({ length: 12_000 }, () => 1) })
      expectError(answer, 422, 'invalid')
      expect(Object.keys(envelope(answer).errors ?? {})).toHaveLength(1)
    })

    test('wrong parameters are refused with 400', async () => {
      const body = { lines: [] }
      const messageOf = async (path: string, headers = {}) => {
        const answer = await order(body, path, headers)
        expectError(answer, 400, 'bad-request')
        return envelope(answer).data.message
      }
      expect(await messageOf('/ext/orders/x?urgent=true')).toBe('The path parameter customer must be integer')
      expect(await messageOf('/ext/orders/7?urgent=maybe&other=1')).toBe(
        'The query parameter other is unknown; the query parameter urgent must be boolean',
      )
      expect(await messageOf('/ext/orders/7')).toBe('The query parameter urgent is required')
      expect(await messageOf(ORDER, { 'X-Channel': 'fax' })).toMatch(/^The header x-channel must be equal/)
    })

    test('the guard runs before the schema', async () => {
      expectError(await post('', '/ext/orders/x', {}), 401, 'unauthenticated')
    })
  })
})

test('routes have the limits of the other routes', async () => {
  const service = await startService('sqlite', {
    routes: [guarded],
    http: { rateLimitPerMinute: 5 },
  })
  const cookie = await openSession(service.url)
  const statuses: number[] = []
  for (let count = 0; count < 7; count++)
    statuses.push((await send(service.url, { path: '/ext/login', headers: { cookie } })).status)
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0)
  const anonymous: number[] = []
  for (let count = 0; count < 7; count++)
    anonymous.push((await send(service.url, { path: '/ext/public' })).status)
  expect(new Set(anonymous)).toEqual(new Set([200, 429]))
  const foreign = await send(service.url, { path: '/ext/public', headers: { host: 'evil.example' } })
  expectError(foreign, 421, 'misdirected')
  await service.close()
})

test('a raw request with dots in its path finds no route', async () => {
  const service = await startService('sqlite', { routes: [guarded] })
  const raw = rawRequest('GET /ext/../ext/public HTTP/1.1')
  expect((await sendRaw(service.url, raw)).status).toBe(404)
  await service.close()
})
