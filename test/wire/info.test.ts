// /ws/public/app/info, the first request of a client; its response has no envelope.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setUserDisabled } from '../../src/service/auth/accounts.js'
import { onEveryEngine, startService, USERNAME, type Service } from '../targets.js'
import { expectError, json, JSON_BODY, openSession, send, withServer } from './exchange.js'

const INFO = '/ws/public/app/info'
const OPEN = '{"application":{"name":"Verso"},"authentication":{"callbackUrl":"/callback"}}'

onEveryEngine((engine) => {
  let service: Service
  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())
  const ask = (headers = {}, url = service.url) => send(url, { path: INFO, headers })

  test('info tells an unknown client only the name and the login URL', async () => {
    for (const headers of [
      {},
      { cookie: 'JSESSIONID=nonsense' },
      { cookie: `JSESSIONID=${'a'.repeat(43)}` },
    ]) {
      const { status, text, headers: answered } = await ask(headers)
      expect([status, text]).toEqual([200, OPEN])
      expect(answered['content-type']).toBe('application/json; charset=utf-8')
      expect(answered['set-cookie']).toBeUndefined()
    }
  })

  test('info tells a logged-in client its user and the limits of the service', async () => {
    const cookie = await openSession(service.url)
    expect(json(await ask({ cookie }))).toEqual({
      ...{ application: { name: 'Verso' }, authentication: { callbackUrl: '/callback' } },
      user: {
        ...{ id: 1, login: USERNAME, name: 'Ada', nameField: 'name', lang: 'en', technical: true },
      },
      api: { pagination: { maxPerPage: 1_000, defaultPerPage: 40 } },
      data: { upload: { maxSize: 25 } },
    })
    await setUserDisabled(service.app, USERNAME, true)
    expect((await ask({ cookie })).text).toBe(OPEN)
    await setUserDisabled(service.app, USERNAME, false)
  })

  test('info respects the base path and answers only GET, HEAD and OPTIONS; other public paths are 401', async () => {
    await withServer(service, { basePath: '/verso' }, async (url) => {
      const { authentication } = json(await ask({}, url)) as { authentication: object }
      expect(authentication).toEqual({ callbackUrl: '/verso/callback' })
    })
    const posted = await send(service.url, { method: 'POST', path: INFO, headers: JSON_BODY, body: '{}' })
    expectError(posted, 405, 'method')
    expect(posted.headers.allow).toBe('GET, HEAD, OPTIONS')
    for (const path of ['/ws/public/app', '/ws/public', '/ws/app/info', `${INFO}/x`])
      expect((await send(service.url, { path })).status).toBe(401)
  })
})
