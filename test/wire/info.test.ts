// /ws/public/app/info, the first request of a client; its response has no envelope.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createServer } from '../../src/http/server.js'
import type { HttpSettings } from '../../src/http/settings.js'
import { changePassword, ensureDemoAccount, setUserDisabled } from '../../src/service/auth/accounts.js'
import { countPendingHashes } from '../../src/service/input/password-hash.js'
import {
  countAnew,
  onEngineOfTier,
  onEveryEngine,
  PASSWORD,
  startService,
  USERNAME,
  type Service,
} from '../targets.js'
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

onEngineOfTier((engine) => {
  describe('the account of the demo', () => {
    const DEMO = { username: 'admin', password: 'admin' }
    let demo: Service
    beforeAll(async () => {
      demo = await startService(engine, { settings: { isDemo: true } })
      await demo.app.db.transaction((tx) => tx.run('delete from "verso.auth.User"'))
      await countAnew(demo, 'verso.auth.User')
      await ensureDemoAccount(demo.app)
    })
    afterAll(() => demo.close())

    /** Serves the App as `verso demo` does, and passes a function that reads the offered account. */
    async function withDemoServer(
      { app }: Pick<Service, 'app'>,
      http: Partial<HttpSettings>,
      use: (readDemo: () => Promise<unknown>) => Promise<void>,
    ): Promise<void> {
      const settings = { host: '127.0.0.1', port: 0, ...http }
      const server = await createServer(app, settings, { offersDemoAccount: true })
      const [url = ''] = await server.listen()
      const local = url.replace('0.0.0.0', '127.0.0.1')
      try {
        await use(async () => {
          const { authentication } = json(await send(local, { path: INFO })) as {
            authentication: { demo?: unknown }
          }
          return authentication.demo
        })
      } finally {
        await server.close()
      }
    }

    test('info shows the account of a demo on this computer', async () => {
      for (const host of ['127.0.0.1', 'localhost'])
        await withDemoServer(demo, { host }, async (readDemo) => {
          expect(await readDemo()).toEqual(DEMO)
        })
    })

    test.for([
      { host: '0.0.0.0' },
      { publicUrl: 'https://records.example.org' },
      { trustProxy: ['127.0.0.1'] },
    ] as const)('info hides the account where others may reach the service: %o', async (http) => {
      await withDemoServer(demo, http, async (readDemo) => {
        expect(await readDemo()).toBeUndefined()
      })
    })

    test('info hides the account from every server that does not offer it, also in demo mode', async () => {
      expect((await send(demo.url, { path: INFO })).text).toBe(OPEN)
    })

    test('info hides the account if the service is not in demo mode', async () => {
      const plain = await startService(engine, { location: demo.location })
      try {
        await withDemoServer(plain, {}, async (readDemo) => {
          expect(await readDemo()).toBeUndefined()
        })
      } finally {
        await plain.close()
      }
    })

    test('info verifies the password once, and again only after it was changed', async () => {
      await withDemoServer(demo, {}, async (readDemo) => {
        expect(await readDemo()).toEqual(DEMO)
        expect(await countHashesDuring(readDemo)).toBe(0)
        await setUserDisabled(demo.app, 'admin', true)
        expect(await readDemo()).toBeUndefined()
        await setUserDisabled(demo.app, 'admin', false)
        expect(await countHashesDuring(readDemo)).toBe(0)
        await changePassword(demo.app, 'admin', PASSWORD)
        expect(await countHashesDuring(readDemo)).toBe(1)
        expect(await readDemo()).toBeUndefined()
        expect(await countHashesDuring(readDemo)).toBe(0)
      })
    })
  })
})

/** The largest number of hashes at a time. A hash takes many turns of the event loop, so none is missed. */
async function countHashesDuring(call: () => Promise<unknown>): Promise<number> {
  const seen = [0]
  const state = { hasEnded: false }
  const ended = call().finally(() => (state.hasEnded = true))
  while (!state.hasEnded) {
    seen.push(countPendingHashes())
    await nextTurn()
  }
  await ended
  return Math.max(...seen)
}
