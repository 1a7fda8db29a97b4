// Base path, health checks, and the setup of the first administrator.
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KNOWN_PATHS } from '../../src/http/route/errors.js'
import { createServer } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { expectFailures } from '../server-failures.js'
import { countAnew, onEveryEngine, startService, type Service } from '../targets.js'
import {
  asUser,
  credentials,
  envelope,
  expectError,
  login,
  OK,
  only,
  openSession,
  send,
  withServer,
} from './exchange.js'

const JSON_TYPE = 'application/json; charset=utf-8'

onEveryEngine((engine) => {
  describe('a base path', () => {
    let service: Service
    let root: string

    beforeAll(async () => {
      service = await startService(engine, { http: { basePath: '/verso' } })
      root = new URL(service.url).origin
    })
    afterAll(() => service.close())

    test('every route works below the base path, and its links contain the base path', async () => {
      expect(service.url).toBe(`${root}/verso`)
      const cookie = await openSession(service.url)
      const user = asUser(service.url, cookie)
      const { id } = only(await user.create('crm.Contact', { firstName: 'Base' }))
      expect(only(await user.get(`/ws/rest/crm.Contact/${id}`))).toMatchObject({ firstName: 'Base' })
      const page = await user.get('/ws/rest/crm.Contact?limit=1')
      expect(page.headers.link).toBe(
        '</verso/ws/rest/crm.Contact?offset=0&limit=1>; rel="first", </verso/ws/rest/crm.Contact?offset=0&limit=1>; rel="last"',
      )
      const logout = await user.get('/logout', { accept: 'text/html' })
      expect([logout.status, logout.headers.location]).toEqual([303, '/verso/'])
      expect(logout.headers['set-cookie']?.[0]).toBe(
        'JSESSIONID=; HttpOnly; Max-Age=0; SameSite=Lax; Path=/verso',
      )
      for (const path of ['', '/', '/healthz', '/readyz']) {
        expect((await send(service.url, { path })).status, path).toBe(200)
      }
    })

    test('outside of the base path everything is 404', async () => {
      for (const path of [
        '/',
        '/healthz',
        '/callback',
        '/ws/rest/crm.Contact',
        '/verso2/healthz',
        '/Verso/healthz',
      ]) {
        expectError(await send(root, { path }), 404, 'not-found')
      }
      for (const path of ['/ws', '/ws/nothing', '/ws/rest/crm.Contact']) {
        expectError(await send(service.url, { path }), 401, 'unauthenticated')
      }
    })

    test('an unknown path names paths with the base path, and a user can request each of them', async () => {
      const user = asUser(service.url, await openSession(service.url))
      const answers = [
        await send(root, { path: '/api/contacts' }),
        await user.get('/api/contacts'),
        await user.get('/ws/nothing'),
      ]
      const names = KNOWN_PATHS.map(([path, purpose]) => `/verso${path} (${purpose})`)
      for (const answer of answers) {
        expectError(answer, 404, 'not-found')
        expect(envelope(answer).data.message).toBe(`Nothing is served at this path. Try ${names.join(', ')}`)
      }
      for (const [name, purpose] of KNOWN_PATHS) {
        const path = name.replace('<model>', 'crm.Contact')
        const method = purpose.startsWith('POST') ? 'POST' : 'GET'
        expect((await user.ask('OPTIONS', path)).headers.allow?.split(', '), path).toContain(method)
        if (method === 'GET') expect((await user.get(path)).status, path).toBe(200)
      }
    })
  })

  describe('health', () => {
    let service: Service
    beforeAll(async () => {
      service = await startService(engine)
    })
    afterAll(() => service.close())

    const WRITABLE = '{"status":0,"data":[{"writable":true}]}'
    test.for([
      ['/healthz', OK],
      ['/readyz', WRITABLE],
      ['/readyz?write', WRITABLE],
    ] as const)('%s needs no session', async ([path, body]) => {
      const answer = await send(service.url, { path })
      expect([answer.status, answer.headers['content-type'], answer.text]).toEqual([200, JSON_TYPE, body])
    })

    test('the start page says that the service is running', async () => {
      const answer = await send(service.url, { path: '/' })
      expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8'])
      expect(answer.text).toBe(
        'Verso is running. Log in with POST callback; records are at ws/rest/<model>, and the API reference is at docs.\n',
      )
    })

    test('during shutdown, requests in flight are answered; the service is alive but not ready', async () => {
      const server = await createServer(service.app, { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0 })
      expectFailures(server.fastify.server, ['busy'])
      const [url = ''] = await server.listen()
      const underWay = await Promise.all(['/readyz', '/healthz'].map((path) => beginRequest(url, path)))
      const closed = server.close()
      const [ready = '', alive = ''] = await Promise.all(underWay.map(({ finish }) => finish()))
      await closed
      expect(ready).toMatch(/^HTTP\/1\.1 503 /)
      expect(ready).toMatch(/\r\nretry-after: 1\r\n/)
      expect(ready).toContain('"kind":"busy","title":"Busy","message":"The service is shutting down"')
      expect(alive).toMatch(/^HTTP\/1\.1 200 /)
    })
  })

  describe('the setup link for the first administrator', () => {
    const TOKEN = 'a-token-that-was-printed-at-start'
    const PASSWORD = 'a long enough password'
    let service: Service

    beforeAll(async () => {
      service = await startService(engine, { setupToken: TOKEN })
      await service.app.db.transaction((tx) => tx.run('delete from "verso.auth.User"'))
      await countAnew(service, 'verso.auth.User')
    })
    afterAll(() => service.close())

    const post = (body: string, token = TOKEN, headers = {}) =>
      send(service.url, { method: 'POST', path: `/setup?token=${token}`, headers, body })
    const form = (username: string, password: string) =>
      new URLSearchParams({ username, password }).toString()

    test('the setup link needs its token', async () => {
      const paths = [
        '/setup',
        '/setup?token=',
        '/setup?token=wrong',
        `/setup?token=${TOKEN}x`,
        `/setup?token=a&token=${TOKEN}`,
      ]
      for (const path of paths) {
        expectError(await send(service.url, { path }), 404, 'not-found')
        expectError(
          await send(service.url, { method: 'POST', path, body: form('eve', PASSWORD) }),
          404,
          'not-found',
        )
      }
    })

    test('the setup page cannot be framed and runs no script', async () => {
      const answer = await send(service.url, { path: `/setup?token=${TOKEN}` })
      expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
      expect(answer.headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/)
      // Without a referrer a browser would not send the origin of the form either.
      expect(answer.headers['referrer-policy']).toBe('strict-origin')
      expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'x-frame-options': 'SAMEORIGIN' })
      expect(answer.text).toContain('<form method="post">')
      expect(answer.text).not.toContain(TOKEN)
    })

    test('an invalid setup is rejected, and the setup link stays usable', async () => {
      expectError(await post(''), 400, 'bad-request')
      expectError(await post('{'), 400, 'bad-request')
      expectError(await post('username=eve'), 400, 'bad-request')
      expectError(await post(form('eve', 'too short')), 422, 'invalid')
      expectError(await post(form('no spaces', PASSWORD)), 422, 'invalid')
      expectError(
        await post(form('eve', PASSWORD), TOKEN, { origin: 'https://evil.example' }),
        403,
        'forbidden',
      )
    })

    test('the setup link creates one administrator, then answers 404', async () => {
      const answers = await Promise.all(['Root', 'Eve', 'Mallory'].map((name) => post(form(name, PASSWORD))))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404])
      const [made] = ['Root', 'Eve', 'Mallory'].filter((_, index) => answers[index]?.status === 200)
      expect(answers.find(({ status }) => status === 200)?.text).toBe(OK)
      const entered = await login(service.url, {}, credentials(made ?? '', PASSWORD))
      expect(only(entered)).toMatchObject({ username: made?.toLowerCase(), roles: ['administrator'] })
      expectError(await post(form('second', PASSWORD)), 404, 'not-found')
      expect((await login(service.url, {}, credentials('second', PASSWORD))).status).toBe(401)
    })

    test('without a setup token there is no setup link', async () => {
      await withServer(service, {}, async (url) => {
        expectError(await send(url, { path: '/setup?token=undefined' }), 404, 'not-found')
      })
    })
  })
})

/** A request of which the server has read the beginning. */
async function beginRequest(url: string, path: string): Promise<{ finish: () => Promise<string> }> {
  const { hostname, port } = new URL(url)
  const socket = net.connect(Number(port), hostname)
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  let text = ''
  const begun = new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      text += chunk.toString()
      if (text.endsWith(OK)) resolve()
    })
  })
  socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await begun
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n`)
  // There is no signal that the server has read half a request.
  await sleep(100)
  return {
    finish: async () => {
      text = ''
      socket.write('Connection: close\r\n\r\n')
      await ended
      return text
    },
  }
}
