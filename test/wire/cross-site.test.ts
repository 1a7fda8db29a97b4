// Requests that a page may make a browser send: the cross-site rule as a matrix, CORS, and the Host check.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpSettings } from '../../src/http/settings.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import {
  credentials,
  expectError,
  JSON_BODY,
  openSession,
  PATCH_BODY,
  rawRequest,
  send,
  sendRaw,
  withServer,
  type Sent,
} from './exchange.js'

const PUBLIC = 'https://records.example.org'
const ALLOWED = 'https://partner.example'
const CONTACTS = '/ws/rest/crm.Contact'
const MISSING = `${CONTACTS}/999999999`

/** The status of each request if it is accepted; reads, or requests that can be repeated a thousand times without harm. */
const requests: readonly (readonly [
  sent: Sent,
  passed: number,
  isGuarded: boolean,
  needsSession: boolean,
])[] = [
  [{ method: 'GET', path: CONTACTS }, 200, false, true],
  [{ method: 'HEAD', path: CONTACTS }, 200, false, true],
  [{ method: 'OPTIONS', path: CONTACTS }, 204, false, true],
  [{ method: 'GET', path: '/healthz' }, 200, false, false],
  [{ method: 'PUT', path: CONTACTS, headers: JSON_BODY, body: '{"data":[]}' }, 400, true, true],
  [
    { method: 'PUT', path: CONTACTS, headers: { 'content-type': 'text/plain' }, body: '{"data":{}}' },
    415,
    true,
    true,
  ],
  [{ method: 'POST', path: MISSING, headers: JSON_BODY, body: '{"data":{"version":0}}' }, 404, true, true],
  [{ method: 'DELETE', path: MISSING }, 404, true, true],
  [{ method: 'PATCH', path: CONTACTS, headers: JSON_BODY, body: '{}' }, 405, true, true],
  [{ method: 'PATCH', path: MISSING, headers: PATCH_BODY, body: '{"version":0}' }, 404, true, true],
  [{ method: 'POST', path: '/callback', headers: JSON_BODY, body: '{' }, 400, true, false],
  [{ method: 'POST', path: '/login.jsp', headers: JSON_BODY, body: '{' }, 400, true, false],
  [{ method: 'GET', path: '/logout' }, 200, true, false],
  [{ method: 'POST', path: '/logout' }, 200, true, false],
]
const SITES = [
  undefined,
  'same-origin',
  'none',
  'same-site',
  'cross-site',
  '',
  'Same-Origin',
  'same-origin, cross-site',
]
const originsOf = (own: string) => [
  undefined,
  own,
  PUBLIC,
  ALLOWED,
  'https://evil.example',
  'null',
  '',
  `${own}.evil.example`,
  'http://127.0.0.1:1',
  'not an origin',
]

onEveryEngine((engine) => {
  let service: Service
  let cookie: string

  beforeAll(async () => {
    service = await startService(engine, { http: { publicUrl: PUBLIC, allowOrigins: [ALLOWED] } })
    cookie = await openSession(service.url)
  })
  afterAll(() => service.close())

  /** The rule, derived from the contract; the service has to agree in every case. */
  const isOurs = (site: string | undefined, origin: string | undefined) => {
    if (site !== undefined) return site === 'same-origin' || site === 'none'
    return origin === undefined || origin === service.url || origin === PUBLIC
  }

  test.for(requests)(
    '%o is accepted exactly where the cross-site rule allows it',
    async ([sent, passed, isGuarded, needsSession]) => {
      const wrong: unknown[] = []
      // The logout is sent without a session, because the other requests need theirs.
      const session = sent.path === '/logout' ? {} : { cookie }
      for (const site of SITES) {
        for (const origin of originsOf(service.url)) {
          const headers = {
            ...(site === undefined ? {} : { 'sec-fetch-site': site }),
            ...(origin === undefined ? {} : { origin }),
          }
          const { status } = await send(service.url, {
            ...sent,
            headers: { ...sent.headers, ...session, ...headers },
          })
          const isCookieless = origin === ALLOWED && needsSession
          const expected = isGuarded && !isOurs(site, origin) ? 403 : isCookieless ? 401 : passed
          if (status !== expected) wrong.push({ ...headers, status, expected })
        }
      }
      expect(wrong).toEqual([])
    },
  )

  test('a cross-site write is rejected with 403 and the reason, before its body is read', async () => {
    const headers = { ...JSON_BODY, cookie, origin: 'https://evil.example' }
    const answer = await send(service.url, {
      method: 'PUT',
      path: CONTACTS,
      headers,
      body: 'this is no JSON',
    })
    expectError(answer, 403, 'forbidden')
    expect(answer.text).toContain('"Cross-site request rejected: ')
    expect(answer.headers['access-control-allow-origin']).toBeUndefined()
  })

  test('a cross-site login opens no session', async () => {
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { origin: ALLOWED },
    ]) {
      const sent = {
        method: 'POST',
        path: '/callback',
        headers: { ...JSON_BODY, ...headers },
        body: credentials(),
      }
      const answer = await send(service.url, sent)
      expectError(answer, 403, 'forbidden')
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
  })

  describe('CORS', () => {
    const preflight = (origin: string, headers = {}) =>
      send(service.url, {
        ...{ method: 'OPTIONS', path: CONTACTS },
        headers: {
          origin,
          'access-control-request-method': 'PUT',
          'sec-fetch-site': 'cross-site',
          ...headers,
        },
      })

    test('an allowed origin gets its preflight answered without a session', async () => {
      const answer = await preflight(ALLOWED)
      expect([answer.status, answer.text]).toEqual([204, ''])
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': ALLOWED,
        'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
        'access-control-allow-headers':
          'Accept, API-KEY, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Last-Event-ID, Prefer, Range',
        'access-control-max-age': '600',
        vary: 'Cookie, Authorization, API-KEY, Accept-Encoding, Origin',
      })
      expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
    })

    test('an allowed origin may read responses, and its cookies are ignored', async () => {
      const answer = await send(service.url, { path: CONTACTS, headers: { origin: ALLOWED, cookie } })
      expectError(answer, 401, 'unauthenticated')
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': ALLOWED,
        'access-control-expose-headers':
          'Accept-Ranges, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Link, Location, Preference-Applied, Retry-After, X-Commit-Seq, X-Next-After, X-Request-Id',
        vary: 'Cookie, Authorization, API-KEY, Accept-Encoding, Origin, Accept',
      })
      expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
    })

    test.for([
      'https://evil.example',
      'null',
      `${ALLOWED}.evil.example`,
      `${ALLOWED}:8443`,
      'http://partner.example',
      `${ALLOWED}/`,
      ALLOWED.toUpperCase(),
    ])('the origin %s, which is not allowed, gets no CORS headers', async (origin) => {
      const answer = await preflight(origin)
      expectError(answer, 401, 'unauthenticated')
      for (const name of Object.keys(answer.headers)) expect(name).not.toMatch(/^access-control/)
    })

    test('without --allow-origin, no origin gets CORS headers', async () => {
      await withServer(service, {}, async (url) => {
        const answer = await send(url, {
          ...{ method: 'OPTIONS', path: CONTACTS },
          headers: { origin: ALLOWED, 'access-control-request-method': 'PUT' },
        })
        expectError(answer, 401, 'unauthenticated')
        expect(answer.headers['access-control-allow-origin']).toBeUndefined()
      })
    })
  })

  describe('the Host header', () => {
    const statusFor = async (host: string, url = service.url) =>
      (await sendRaw(url, rawRequest('GET /healthz HTTP/1.1', { host }))).status

    const hosts: readonly (readonly [host: string, status: number])[] = [
      ['localhost', 200],
      ['localhost:8080', 200],
      ['LOCALHOST', 200],
      ['localhost.', 200],
      ['app.localhost', 200],
      ['127.0.0.1', 200],
      ['127.0.0.1:65535', 200],
      ['127.255.0.9', 200],
      ['[::1]', 200],
      ['[::1]:8080', 200],
      ['records.example.org', 200],
      ['records.example.org:443', 200],
      ['Records.Example.ORG', 200],
      ['evil.example', 421],
      ['evil.example:8080', 421],
      ['localhost.evil.example', 421],
      ['notlocalhost', 421],
      ['127.0.0.1.evil.example', 421],
      ['127.1', 421],
      ['2130706433', 421],
      ['0.0.0.0', 421],
      ['10.0.0.1', 421],
      ['[::2]', 421],
      ['[::ffff:10.0.0.1]', 421],
      ['localhost@evil.example', 421],
      ['evil.example#localhost', 421],
      ['records.example.org.evil.example', 421],
      ['', 421],
    ]
    test.for(hosts)('Host "%s" on loopback is answered with %i', async ([host, status]) => {
      expect(await statusFor(host)).toBe(status)
    })

    test('an unknown Host is rejected with 421 on every path, whatever an untrusted proxy says', async () => {
      const paths = ['/', '/healthz', '/callback', '/logout', CONTACTS, '/nothing']
      for (const path of paths) {
        const headers = { host: 'evil.example', cookie, 'x-forwarded-host': 'localhost' }
        expectError(await send(service.url, { path, headers }), 421, 'misdirected')
      }
    })

    test('any Host is accepted while the service listens beyond loopback', async () => {
      const open: Partial<HttpSettings> = { host: '0.0.0.0' }
      await withServer(service, open, async (url) => {
        const local = url.replace('0.0.0.0', '127.0.0.1')
        for (const host of ['evil.example', 'localhost', '10.0.0.1:80'])
          expect(await statusFor(host, local)).toBe(200)
      })
    })
  })
})
