import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpSettings } from '../../src/http/settings.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import {
  asUser,
  credentials,
  expectError,
  json,
  JSON_BODY,
  login,
  OK,
  openSession,
  send,
  sessionIdOf,
  withServer,
} from './exchange.js'

const ACCOUNT =
  '{"status":0,"data":[{"id":1,"version":0,"username":"ada","name":"Ada","roles":["administrator"]}]}'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const form = new URLSearchParams({ username: USERNAME, password: PASSWORD }).toString()

onEveryEngine((engine) => {
  let service: Service

  // Each request has its own address, so that the failures of one case do not delay the next.
  let addresses = 0
  const from = () => ({ 'x-forwarded-for': `10.0.${Math.floor(++addresses / 250)}.${addresses % 250}` })
  const post = (path: string, headers: Record<string, string>, body?: string | Buffer) =>
    send(service.url, {
      method: 'POST',
      path,
      headers: { ...from(), ...headers },
      ...(body === undefined ? {} : { body }),
    })

  beforeAll(async () => {
    service = await startService(engine, { http: { trustProxy: ['127.0.0.1'] } })
  })
  afterAll(() => service.close())

  const accepted: readonly (readonly [name: string, headers: Record<string, string>, body: string])[] = [
    ['JSON', JSON_BODY, credentials()],
    ['JSON without a content type', {}, credentials()],
    ['JSON with a charset', { 'content-type': 'application/json; charset=utf-8' }, credentials()],
    ['JSON as text/plain', { 'content-type': 'text/plain' }, credentials()],
    ['JSON as a form', FORM, credentials()],
    ['JSON after white space', JSON_BODY, `\r\n\t ${credentials()}`],
    [
      'JSON with additional keys',
      JSON_BODY,
      JSON.stringify({ username: USERNAME, password: PASSWORD, x: [1] }),
    ],
    ['a user name in upper case', JSON_BODY, credentials(USERNAME.toUpperCase())],
    ['a form', FORM, form],
    ['a form with a charset', { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }, form],
    ['a form without a content type', {}, form],
  ]
  test.for(accepted)('a login at /callback accepts %s', async ([, headers, body]) => {
    const answer = await post('/callback', headers, body)
    expect([answer.status, answer.text]).toEqual([200, ACCOUNT])
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(sessionIdOf(answer)).toHaveLength(43)
  })

  test.for([
    ['/login.jsp', {}, credentials()],
    ['/login.jsp', JSON_BODY, credentials()],
    ['/login.jsp', FORM, form],
    ['/login.jsp/', JSON_BODY, credentials()],
    ['/callback/', JSON_BODY, credentials()],
  ] as const)('a login at %s accepts the same credentials with %o', async ([path, headers, body]) => {
    const answer = await post(path, headers, body)
    expect([answer.status, answer.text]).toEqual([200, ACCOUNT])
    expect(sessionIdOf(answer)).toHaveLength(43)
  })

  const rejected: readonly (readonly [
    name: string,
    status: number,
    headers: Record<string, string>,
    body?: string | Buffer,
  ])[] = [
    ['a wrong password', 401, JSON_BODY, credentials(USERNAME, 'wrong')],
    ['an unknown user', 401, JSON_BODY, credentials('nobody')],
    ['a password with an additional space', 401, JSON_BODY, credentials(USERNAME, `${PASSWORD} `)],
    ['an empty password', 401, JSON_BODY, credentials(USERNAME, '')],
    ['an empty user name', 401, JSON_BODY, credentials('')],
    ['no password', 401, JSON_BODY, '{"username":"ada"}'],
    ['no user name', 401, JSON_BODY, `{"password":"${PASSWORD}"}`],
    ['an empty object', 401, JSON_BODY, '{}'],
    ['numbers', 401, JSON_BODY, '{"username":1,"password":2}'],
    ['nulls', 401, JSON_BODY, '{"username":null,"password":null}'],
    ['lists', 401, JSON_BODY, `{"username":["ada"],"password":["${PASSWORD}"]}`],
    ['objects', 401, JSON_BODY, '{"username":{"$ne":null},"password":{"$ne":null}}'],
    ['a list instead of an object', 401, JSON_BODY, `["ada","${PASSWORD}"]`],
    ['null instead of an object', 401, JSON_BODY, 'null'],
    ['a text instead of an object', 401, JSON_BODY, '"ada"'],
    ['a wrong form', 401, FORM, 'username=ada&password=wrong'],
    [
      'a multipart form',
      401,
      { 'content-type': 'multipart/form-data; boundary=x' },
      '--x\r\n\r\nada\r\n--x--\r\n',
    ],
    ['an empty body', 401, JSON_BODY, ''],
    ['no body at all', 401, {}],
    ['no body, and a JSON content type', 401, JSON_BODY],
    ['truncated JSON', 400, JSON_BODY, '{"username":"ada",'],
    ['JSON with trailing text', 400, JSON_BODY, `${credentials()}x`],
    ['malformed JSON as text', 400, { 'content-type': 'text/plain' }, '{username: ada}'],
    ['JSON that is not UTF-8', 400, JSON_BODY, Buffer.from('{"username":"\xff"}', 'latin1')],
    ['a polluting key', 400, JSON_BODY, '{"__proto__":{"polluted":1},"username":"ada"}'],
  ]
  const expectRejected = async (path: string, [, status, headers, body]: (typeof rejected)[number]) => {
    const answer = await post(path, headers, body)
    expectError(answer, status, status === 401 ? 'unauthenticated' : 'bad-request')
    expect(answer.headers['set-cookie']).toBeUndefined()
    expect(answer.headers['x-csrf-token']).toBeUndefined()
  }
  test.for(rejected)('a login at /callback rejects %s with %i', (row) => expectRejected('/callback', row))
  test.for(rejected.filter((_, index) => index % 5 === 0))(
    'a login at /login.jsp rejects %s with %i',
    (row) => expectRejected('/login.jsp', row),
  )

  test('an unknown user and a wrong password get the same response', async () => {
    const answers = [
      await post('/callback', JSON_BODY, credentials(USERNAME, 'wrong')),
      await post('/callback', JSON_BODY, credentials('nobody', 'wrong')),
      await post('/callback', JSON_BODY, credentials('not a name!', 'wrong')),
    ]
    const [first, ...others] = answers.map((answer) => {
      const requestId = String(answer.headers['x-request-id'])
      expect(requestId).toMatch(/^[\w-]{12,}$/)
      const headers = { ...answer.headers, 'x-request-id': 'ID', date: 'now' }
      return { headers, text: answer.text.replace(requestId, 'ID') }
    })
    expect(first?.text).toBe(
      '{"status":-1,"data":{"kind":"unauthenticated","title":"Not logged in",' +
        '"message":"Wrong user name or password","requestId":"ID"}}',
    )
    for (const other of others) expect(other).toEqual(first)
  })

  describe('login cookies', () => {
    const cookiesWith = async (http: Partial<HttpSettings>, headers: Record<string, string> = {}) =>
      withServer(service, http, async (url) => {
        const answer = await login(url, headers)
        expect(answer.status).toBe(200)
        return { answer, cookies: answer.headers['set-cookie'] ?? [] }
      })
    const TOKENS = /^JSESSIONID=([\w-]{43})(; HttpOnly.*)\nCSRF-TOKEN=([\w-]{32})(;.*)$/

    test('a login sets the HttpOnly session cookie first, then the CSRF token readable by scripts', async () => {
      const { answer, cookies } = await cookiesWith({})
      const [, sessionId = '', sessionTail, csrfToken, csrfTail] = TOKENS.exec(cookies.join('\n')) ?? []
      expect(sessionTail).toBe('; HttpOnly; SameSite=Lax; Path=/')
      expect(csrfTail).toBe('; SameSite=Lax; Path=/')
      expect(Buffer.from(sessionId, 'base64url')).toHaveLength(32)
      expect(answer.headers['x-csrf-token']).toBe(csrfToken)
    })

    test('the path of the login cookies is the base path', async () => {
      const { cookies } = await cookiesWith({ basePath: '/verso/app' })
      expect(cookies.map((cookie) => cookie.replace(/=[\w-]+/, '=…'))).toEqual([
        'JSESSIONID=…; HttpOnly; SameSite=Lax; Path=/verso/app',
        'CSRF-TOKEN=…; SameSite=Lax; Path=/verso/app',
      ])
    })

    const https = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '10.1.1.1' }
    const proxies: readonly (readonly [
      string,
      HttpSettings['trustProxy'],
      Record<string, string>,
      boolean,
    ])[] = [
      ['https by a trusted proxy', ['127.0.0.1'], https, true],
      ['https by a proxy in a trusted network', ['127.0.0.0/8'], https, true],
      ['http by a trusted proxy', ['127.0.0.1'], { ...https, 'x-forwarded-proto': 'http' }, false],
      ['a trusted proxy without X-Forwarded-Proto', ['127.0.0.1'], {}, false],
      ['https by a proxy that is not trusted', ['10.9.9.9'], https, false],
      ['https by anybody, while no proxy is trusted', false, https, false],
      ['a Forwarded header', ['127.0.0.1'], { forwarded: 'proto=https' }, false],
    ]
    test.for(proxies)(
      'login cookies are Secure only for https by a trusted proxy: %s',
      async ([, trustProxy, headers, isSecure]) => {
        const { cookies } = await cookiesWith({ trustProxy }, headers)
        expect(cookies.map((cookie) => cookie.endsWith('; Secure'))).toEqual([isSecure, isSecure])
      },
    )
  })

  describe('logout', () => {
    const cleared = [
      'JSESSIONID=; HttpOnly; Max-Age=0; SameSite=Lax; Path=/',
      'CSRF-TOKEN=; Max-Age=0; SameSite=Lax; Path=/',
    ]
    const isAlive = async (cookie: string) =>
      (await asUser(service.url, cookie).get('/ws/rest/crm.Contact')).status === 200

    test.for(['GET', 'POST'])('%s /logout ends the session and clears the cookies', async (method) => {
      const cookie = await openSession(service.url, from())
      expect(await isAlive(cookie)).toBe(true)
      const answer = await send(service.url, { method, path: '/logout', headers: { cookie } })
      expect([answer.status, answer.text, answer.headers['set-cookie']]).toEqual([200, OK, cleared])
      expect(await isAlive(cookie)).toBe(false)
    })

    test.for([
      ['no cookie', {}],
      ['an unknown cookie', { cookie: `JSESSIONID=${'A'.repeat(43)}` }],
      ['an invalid cookie', { cookie: 'JSESSIONID=%00;;=;' }],
    ] as const)('a logout with %s gets the same response', async ([, headers]) => {
      for (const method of ['GET', 'POST']) {
        const answer = await send(service.url, { method, path: '/logout', headers })
        expect([answer.status, answer.text, answer.headers['set-cookie']]).toEqual([200, OK, cleared])
      }
    })

    test('HEAD /logout does not end the session', async () => {
      const cookie = await openSession(service.url, from())
      const answer = await send(service.url, { method: 'HEAD', path: '/logout', headers: { cookie } })
      expect([answer.status, answer.headers['set-cookie']]).toEqual([405, undefined])
      expect(await isAlive(cookie)).toBe(true)
    })

    test('a logout does not end other sessions of the user', async () => {
      const [one, other] = [await openSession(service.url, from()), await openSession(service.url, from())]
      await send(service.url, { path: '/logout', headers: { cookie: one } })
      expect([await isAlive(one), await isAlive(other)]).toEqual([false, true])
    })

    test('a logout accepts a form', async () => {
      const headers = {
        cookie: await openSession(service.url, from()),
        'content-type': 'application/x-www-form-urlencoded',
      }
      expect((await send(service.url, { method: 'POST', path: '/logout', headers })).status).toBe(200)
      expect(
        (await send(service.url, { method: 'POST', path: '/logout', headers, body: 'a=b' })).status,
      ).toBe(200)
    })

    test.for(['/logout', '/logout?url=https://evil.example/', '/logout?redirect=//evil.example', '/logout/'])(
      'a browser that navigates to %s is redirected to the start page only',
      async (path) => {
        const cookie = await openSession(service.url, from())
        const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
        const headers = {
          cookie,
          accept,
          referer: 'https://evil.example/',
          'x-forwarded-host': 'evil.example',
        }
        const answer = await send(service.url, { path, headers })
        expect([answer.status, answer.headers.location, answer.text]).toEqual([303, '/', ''])
        expect(answer.headers['set-cookie']).toEqual(cleared)
        expect(await isAlive(cookie)).toBe(false)
      },
    )

    test.for([
      { 'sec-purpose': 'prefetch' },
      { 'sec-purpose': 'prefetch;prerender' },
      { purpose: 'prefetch' },
      { 'x-moz': 'prefetch' },
    ])('a prefetch of /logout with %o is rejected with 403', async (headers) => {
      const cookie = await openSession(service.url, from())
      const answer = await send(service.url, {
        path: '/logout',
        headers: { cookie, accept: 'text/html', ...headers },
      })
      expectError(answer, 403, 'forbidden')
      expect(answer.headers['set-cookie']).toBeUndefined()
      expect(await isAlive(cookie)).toBe(true)
    })
  })

  test('a login answers the roles of the account', async () => {
    await addUser(service.app, { username: 'bob', password: 'a password for bob', roles: ['editor'] })
    const answer = await login(service.url, from(), credentials('bob', 'a password for bob'))
    expect(json(answer)).toEqual({
      status: 0,
      data: [{ id: 2, version: 0, username: 'bob', name: 'bob', roles: ['editor'] }],
    })
  })
})
