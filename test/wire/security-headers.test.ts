// Headers for browsers and caches in every response, compared with helmet, which only serves as the reference.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import helmet from 'helmet'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SECURITY_HEADERS } from '../../src/http/response/headers.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import {
  credentials,
  JSON_BODY,
  login,
  only,
  openSession,
  rawRequest,
  send,
  sendRaw,
  withServer,
  type Answer,
  type Sent,
} from './exchange.js'

const CONTACTS = '/ws/rest/crm.Contact'
const ALLOWED = 'https://partner.example'
const CSP = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
const HSTS = 'max-age=31536000; includeSubDomains'
const WHO = 'Cookie, Authorization, API-KEY, Accept-Encoding'

/** The differences to helmet, and their reasons. */
const DIFFERENCES: Readonly<Record<string, { readonly ours: string | undefined; readonly because: string }>> =
  {
    'content-security-policy': {
      ours: CSP,
      because:
        'no answer of the interface is a page, so nothing may be loaded at all; upgrade-insecure-requests would break plain http',
    },
    'strict-transport-security': {
      ours: undefined,
      because: 'this request came over plain http, where browsers ignore it; over https it is the same',
    },
  }

/** The headers that helmet adds to an empty response. */
async function helmetHeaders(): Promise<Record<string, string>> {
  const middleware = helmet()
  const server = createServer((request, response) => {
    middleware(request, response, () => response.end())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  server.close()
  const plain = new Set(['connection', 'content-length', 'date', 'keep-alive'])
  return Object.fromEntries([...response.headers].filter(([name]) => !plain.has(name)))
}

/** The headers that differ from the expected ones. */
function missingFrom(headers: Answer['headers'], expected: Readonly<Record<string, string | undefined>>) {
  return Object.entries(expected).flatMap(([name, value]) =>
    headers[name] === value ? [] : [`${name}: ${String(headers[name])}`],
  )
}

test('the table of security headers is frozen', () => {
  expect(Object.isFrozen(SECURITY_HEADERS)).toBe(true)
})

onEveryEngine((engine) => {
  let service: Service
  let cookie: string
  let expected: Readonly<Record<string, string | undefined>>
  const setupToken = 'token of the tests'

  beforeAll(async () => {
    service = await startService(engine, { http: { allowOrigins: [ALLOWED] }, setupToken })
    cookie = await openSession(service.url)
    expected = Object.fromEntries(
      Object.entries(await helmetHeaders()).map(([name, value]) => {
        const difference = DIFFERENCES[name]
        return [name, difference ? difference.ours : value]
      }),
    )
  })
  afterAll(() => service.close())

  const answers: readonly (readonly [what: string, sent: Sent, status: number, needsSession?: boolean])[] = [
    ['the start page', { path: '/' }, 200],
    ['health', { path: '/healthz' }, 200],
    ['the public info', { path: '/ws/public/app/info' }, 200],
    ['records', { path: CONTACTS }, 200, true],
    ['HEAD', { method: 'HEAD', path: CONTACTS }, 200, true],
    ['OPTIONS', { method: 'OPTIONS', path: CONTACTS }, 204, true],
    ['an export', { method: 'POST', path: `${CONTACTS}/export`, headers: JSON_BODY, body: '{}' }, 200, true],
    ['a request without a session', { path: CONTACTS }, 401],
    ['a cross-site request', { path: '/logout', headers: { origin: 'https://evil.example' } }, 403],
    ['a missing record', { path: `${CONTACTS}/999999` }, 404, true],
    ['an unknown path', { path: '/nothing' }, 404],
    ['an unknown path below /ws', { path: '/ws/nothing' }, 404, true],
    ['a malformed path', { path: '/%zz' }, 400],
    ['an unknown method', { method: 'DELETE', path: '/healthz' }, 405],
    ['an unknown host', { path: '/healthz', headers: { host: 'evil.example' } }, 421],
    ['malformed JSON', { method: 'PUT', path: CONTACTS, headers: JSON_BODY, body: '{' }, 400, true],
    ['a failed login', { method: 'POST', path: '/callback', body: '{}' }, 401],
    ['a login', { method: 'POST', path: '/callback', body: credentials() }, 200],
    ['a redirect', { path: '/logout', headers: { accept: 'text/html' } }, 303],
    [
      'a preflight',
      {
        ...{ method: 'OPTIONS', path: CONTACTS },
        headers: { origin: ALLOWED, 'access-control-request-method': 'PUT' },
      },
      204,
    ],
  ]

  test.for(answers)(
    'the response to %s has the headers of helmet',
    async ([, sent, status, needsSession]) => {
      const headers = { ...sent.headers, ...(needsSession ? { cookie } : {}) }
      const answer = await send(service.url, { ...sent, headers })
      expect(answer.status, answer.text).toBe(status)
      expect(missingFrom(answer.headers, expected)).toEqual([])
    },
  )

  test('the mutant response without X-Frame-Options is caught', async () => {
    const { headers } = await send(service.url, { path: '/' })
    expect(missingFrom({ ...headers, 'x-frame-options': undefined }, expected)).toEqual([
      'x-frame-options: undefined',
    ])
  })

  test('the response to malformed HTTP has the security headers, too', async () => {
    for (const bytes of [
      'nonsense\r\n\r\n',
      rawRequest(`GET / HTTP/1.1`, { 'x-long': 'y'.repeat(17_000) }),
    ]) {
      const answer = await sendRaw(service.url, bytes)
      expect([400, 431]).toContain(answer.status)
      expect(missingFrom(answer.headers, expected)).toEqual([])
    }
  })

  test('a download has its own Content-Security-Policy and all other security headers', async () => {
    const form = new FormData()
    form.set('request', '{"data":{}}')
    form.set('file', new Blob(['text']), 'a.txt')
    const model = '/ws/rest/com.axelor.meta.db.MetaFile'
    const response = await fetch(`${service.url}${model}/upload`, {
      ...{ method: 'POST', headers: { cookie }, body: form },
    })
    const { id } = only({ status: response.status, headers: {}, text: await response.text() })
    const path = `${model}/${id}/content/download`
    const download = await send(service.url, { path, headers: { cookie } })
    expect(download.status, download.text).toBe(200)
    const own = { 'content-security-policy': "sandbox; default-src 'none'" }
    expect(missingFrom(download.headers, { ...expected, ...own })).toEqual([])
  })

  describe('Strict-Transport-Security', () => {
    const over = async (url: string, protocol: string) => {
      const sent = { path: '/', headers: { 'x-forwarded-proto': protocol } }
      return (await send(url, sent)).headers['strict-transport-security']
    }

    test('Strict-Transport-Security is sent for https by a trusted proxy, as helmet sends it', async () => {
      const { 'strict-transport-security': helmets } = await helmetHeaders()
      await withServer(service, { trustProxy: ['127.0.0.1'] }, async (url) => {
        expect(await over(url, 'https')).toBe(helmets)
        expect(await over(url, 'https')).toBe(HSTS)
        expect(await over(url, 'http')).toBeUndefined()
      })
    })

    test('Strict-Transport-Security is not sent for https by an untrusted proxy', async () => {
      expect(await over(service.url, 'https')).toBeUndefined()
    })
  })

  describe('Vary and Cache-Control', () => {
    const headersOf = async (url: string, sent: Sent) => {
      const { headers } = await send(url, sent)
      return [headers.vary, headers['cache-control']]
    }

    test('records vary by credentials, errors by Accept, too', async () => {
      await withServer(service, {}, async (url) => {
        const headers = { cookie }
        expect(await headersOf(url, { path: CONTACTS, headers })).toEqual([WHO, 'private, no-cache'])
        expect(await headersOf(url, { path: `${CONTACTS}/999999`, headers })).toEqual([
          `${WHO}, Accept`,
          'private, no-cache',
        ])
      })
    })

    test('with --allow-origin every response varies by Origin', async () => {
      for (const origin of [{}, { origin: ALLOWED }, { origin: 'https://evil.example' }]) {
        expect(await headersOf(service.url, { path: '/healthz', headers: origin })).toEqual([
          `${WHO}, Origin`,
          'private, no-cache',
        ])
        expect(await headersOf(service.url, { path: '/nothing', headers: origin })).toEqual([
          `${WHO}, Origin, Accept`,
          'private, no-cache',
        ])
      }
    })

    test('responses about passwords and sessions are no-store', async () => {
      const { headers } = await login(service.url)
      expect(headers['cache-control']).toBe('no-store')
      for (const [method, path] of [
        ['POST', '/callback'],
        ['POST', '/login.jsp'],
        ['GET', '/logout'],
        ['POST', '/logout'],
        ['GET', '/setup?token=wrong'],
        ['POST', '/setup?token=wrong'],
      ] as const)
        expect((await send(service.url, { method, path })).headers['cache-control'], path).toBe('no-store')
    })
  })
})
