// The client in Chromium, on the origin of the service with a session, and on another origin with API keys.
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect } from 'vitest'
import { addUser } from '../../../src/service/auth/accounts.js'
import { bundleForPage, startPages, type Pages } from '../../browser-pages.js'
import { testInBrowser, type Tab } from '../../browser.js'
import { HttpClient } from '../../http-client.js'
import { onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../../targets.js'
import { BROWSER_SCENARIOS, SCENARIOS } from './scenarios.js'

const POLL = { timeout: 30_000 }
const UPDATES = 40
const UPDATES_PER_DROP = 8
/** Scenarios that need a password, which a page of another origin cannot use. */
const WITH_PASSWORD = [
  'logs in once for several calls, and again after a logout',
  'uses an API key, and sends any request',
]

let script: Promise<string> | undefined

onEveryEngine((engine) => {
  let service: Service
  /** On the origin of the service, as behind a reverse proxy. */
  let own: Pages
  /** On another origin, which the service allows. */
  let foreign: Pages
  let admin: HttpClient
  let key = ''

  beforeAll(async () => {
    script ??= bundleForPage(fileURLToPath(new URL('page.ts', import.meta.url)))
    own = await startPages(await script)
    foreign = await startPages(await script)
    service = await startService(engine, { http: { allowOrigins: [foreign.url] } })
    own.target = service.url
    admin = await HttpClient.login(service.url, USERNAME, PASSWORD)
    key = await createKey(admin)
  })
  afterAll(async () => {
    own.close()
    foreign.close()
    await service.close()
  })

  async function createKey(client: HttpClient): Promise<string> {
    const response = await client.request('POST', '/ws/me/keys', { data: { name: 'page' } })
    const { data } = (await response.json()) as { data: [{ key: string }] }
    return data[0].key
  }

  async function createUser(username: string): Promise<string> {
    await addUser(service.app, { username, name: username, password: PASSWORD, roles: ['administrator'] })
    return createKey(await HttpClient.login(service.url, username, PASSWORD))
  }

  /** Calls a function of page.ts in the page. */
  async function call<T>(tab: Tab, name: string, ...parameters: readonly unknown[]): Promise<T> {
    return tab.page.evaluate<T>(`bundle.${name}(${parameters.map((each) => JSON.stringify(each)).join()})`)
  }

  async function runScenarios(tab: Tab, target: object, names: readonly string[]): Promise<void> {
    const results = await call<Record<string, string>>(tab, 'runScenarios', target, names)
    expect(results).toEqual(Object.fromEntries(names.map((name) => [name, 'passed'])))
    // The scenarios provoke errors.
    await tab.takeErrors(/^Failed to load resource: the server responded with a status of 4\d\d/)
  }

  testInBrowser('on the origin of the service, a page with a session passes all scenarios', async (tab) => {
    await tab.open(own.url)
    const names = [...Object.keys(SCENARIOS), ...Object.keys(BROWSER_SCENARIOS)]
    await runScenarios(tab, { url: own.url, username: USERNAME, password: PASSWORD }, names)
  })

  testInBrowser(
    'on an allowed origin, a page with an API key passes all scenarios without a password',
    async (tab) => {
      await tab.open(foreign.url)
      tab.permit(service.url)
      const names = Object.keys(SCENARIOS).filter((name) => !WITH_PASSWORD.includes(name))
      expect(names).toHaveLength(Object.keys(SCENARIOS).length - WITH_PASSWORD.length)
      await runScenarios(tab, { url: service.url, key, username: USERNAME, password: PASSWORD }, names)
    },
  )

  testInBrowser(
    'two users with keys never mix in a page, also beside the session of a third',
    async (tab) => {
      const keys = { eve: await createUser('eve'), bob: await createUser('bob') }
      const login = { data: { username: USERNAME, password: PASSWORD } }
      expect((await tab.context.request.post(`${own.url}/callback`, login)).status()).toBe(200)
      await tab.open(own.url)
      await call(tab, 'mixUsers', own.url, keys)
    },
  )

  testInBrowser(
    'a page follows changes over dropped connections, with none missed or doubled',
    async (tab) => {
      const { seq } = await admin.find('crm.Contact', { limit: 0 })
      await tab.open(own.url)
      await tab.page.evaluate(`void bundle.startFollowing(${JSON.stringify(own.url)}, '${key}', ${seq})`)
      const { data: contact } = await admin.create('crm.Contact', { notes: '0' })
      await expect.poll(() => call(tab, 'listFollowed', contact.id), POLL).toEqual([0])
      for (let version = 0; version < UPDATES; version++) {
        if (version % UPDATES_PER_DROP === 0) own.dropConnections()
        await admin.update('crm.Contact', contact.id, { version, notes: String(version) })
      }
      const versions = Array.from({ length: UPDATES + 1 }, (_, version) => version)
      await expect.poll(() => call(tab, 'listFollowed', contact.id), POLL).toEqual(versions)
      await tab.takeErrors(/^Failed to load resource: net::ERR_/)
    },
  )
})
