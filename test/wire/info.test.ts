// What a client asks before anything else, without an envelope.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setDisabled } from '../../src/service/auth/accounts.js'
import { onEveryEngine, startService, USERNAME, type Service } from '../targets.js'
import { expectRefusal, json, JSON_BODY, openSession, send, withServer } from './exchange.js'

const INFO = '/ws/public/app/info'
const OPEN = '{"application":{"name":"Verso"},"authentication":{"callbackUrl":"/callback"}}'

onEveryEngine((engine) => {
  let service: Service
  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())
  const ask = (headers = {}, url = service.url) => send(url, { path: INFO, headers })

  test('whoever is not known is told where to log in, and no more', async () => {
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

  test('whoever has a session is told who they are, and what the service takes', async () => {
    const cookie = await openSession(service.url)
    expect(json(await ask({ cookie }))).toEqual({
      ...{ application: { name: 'Verso' }, authentication: { callbackUrl: '/callback' } },
      user: {
        ...{ id: 1, login: USERNAME, name: 'Ada', nameField: 'name', lang: 'en', technical: true },
      },
      api: { pagination: { maxPerPage: 1_000, defaultPerPage: 40 } },
      data: { upload: { maxSize: 25 } },
    })
    await setDisabled(service.app, USERNAME, true)
    expect((await ask({ cookie })).text).toBe(OPEN)
    await setDisabled(service.app, USERNAME, false)
  })

  test('below a base path it says so; it is only read; other paths beside it stay shut', async () => {
    await withServer(service, { basePath: '/verso' }, async (url) => {
      const { authentication } = json(await ask({}, url)) as { authentication: object }
      expect(authentication).toEqual({ callbackUrl: '/verso/callback' })
    })
    const posted = await send(service.url, { method: 'POST', path: INFO, headers: JSON_BODY, body: '{}' })
    expectRefusal(posted, 405, 'method')
    expect(posted.headers.allow).toBe('GET, HEAD, OPTIONS')
    for (const path of ['/ws/public/app', '/ws/public', '/ws/app/info', `${INFO}/x`])
      expect((await send(service.url, { path })).status).toBe(401)
  })
})
