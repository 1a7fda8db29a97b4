// The end of a session or a change of permissions takes effect immediately on its node, and on the other within a second.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROLE_MODEL } from '../../src/model/catalog/auth-models.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { SessionCache } from '../../src/service/context/session-cache.js'
import { resolveRoles } from '../../src/service/auth/roles.js'
import { DeafAuthorizer, TrustingSessionCache } from '../mutants/accounts.js'
import { HttpClient } from '../http-client.js'
import {
  onEngineOfTier,
  PASSWORD,
  preparedLocation,
  startService,
  USERNAME,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { asUser, credentials, openSession, send, withServer } from '../wire/exchange.js'

const NEW_PASSWORD = 'an entirely new password'
const PATH = '/ws/rest/crm.Contact'

onEngineOfTier((engine) => {
  let location: DatabaseLocation
  let here: Service
  let there: Service
  let admin: HttpClient
  let count = 0

  beforeAll(async () => {
    location = await preparedLocation(engine)
    here = await startService(engine, { location })
    there = await startService(engine, { location })
    admin = await HttpClient.login(here.url, USERNAME, PASSWORD)
    await admin.create(ROLE_MODEL, { name: 'bare' })
  })
  afterAll(async () => {
    await here.close()
    await there.close()
    location.remove()
  })

  interface Somebody {
    readonly id: number
    readonly cookie: string
    readonly other: string
    /** The version that the administrator reads now. */
    readonly version: () => Promise<number>
  }

  /** A user with two sessions, both opened on the first node. */
  const somebody = async (roles: readonly string[]): Promise<Somebody> => {
    const username = `user${++count}`
    const id = await addUser(here.app, { username, password: PASSWORD, roles })
    const open = () => openSession(here.url, {}, credentials(username))
    const version = async () => (await admin.read(USER_MODEL, id)).version
    return { id, version, cookie: await open(), other: await open() }
  }
  const statusOf = async (cookie: string, url = there.url) => (await asUser(url, cookie).get(PATH)).status
  const rolesOf = async (...names: string[]) => resolveRoles(here.app, names)
  const change = async ({ id, version }: Somebody, values: object) =>
    admin.update(USER_MODEL, id, { version: await version(), ...values })

  interface Case {
    readonly what: string
    readonly roles?: readonly string[]
    /** The statuses of both sessions on the second node, before and after. */
    readonly before?: number
    readonly after: readonly [first: number, second: number]
    readonly isDoneThere?: boolean
    readonly act: (who: Somebody) => Promise<unknown>
  }

  const CASES: readonly Case[] = [
    { what: 'a login', after: [200, 200], act: async () => undefined },
    { what: 'a logout', after: [401, 200], act: ({ cookie }) => asUser(here.url, cookie).get('/logout') },
    {
      ...{ what: 'a change of the own password', after: [200, 401] },
      act: ({ cookie }) =>
        asUser(here.url, cookie).ask('POST', '/ws/me/password', { old: PASSWORD, new: NEW_PASSWORD }),
    },
    {
      ...{ what: 'a password set by an administrator', after: [401, 401] },
      act: (who) => change(who, { password: NEW_PASSWORD }),
    },
    {
      what: 'a new user name',
      after: [401, 401],
      act: (who) => change(who, { username: `other${who.id}` }),
    },
    {
      what: 'an unchanged user name',
      after: [200, 200],
      act: (who) => change(who, { username: `USER${count}`, name: 'x' }),
    },
    { what: 'a disabled account', after: [401, 401], act: (who) => change(who, { disabled: true }) },
    {
      ...{ what: 'a removed account', after: [401, 401] },
      act: async ({ id, version }) => admin.remove(USER_MODEL, id, { version: await version() }),
    },
    { what: 'a removed role', after: [404, 404], act: (who) => change(who, { roles: [] }) },
    {
      ...{ what: 'an added role', roles: [], before: 404, after: [200, 200] },
      act: async (who) => change(who, { roles: await rolesOf('reader') }),
    },
    {
      ...{ what: 'an added permission of a role', roles: ['bare'], before: 404, after: [200, 200] },
      act: async () => {
        const [role] = await rolesOf('bare')
        const { version } = await admin.read(ROLE_MODEL, role?.id ?? 0)
        const permissions = [{ model: 'crm.Contact', canRead: true }]
        await admin.update(ROLE_MODEL, role?.id ?? 0, { version, permissions })
      },
    },
    {
      ...{ what: 'a session ended by its user', after: [200, 401] },
      act: ({ cookie }) => asUser(here.url, cookie).ask('DELETE', '/ws/me/sessions'),
    },
    {
      ...{ what: 'sessions ended by an administrator', after: [401, 401] },
      act: ({ id }) => admin.request('DELETE', `/ws/users/${id}/sessions`),
    },
    {
      ...{ what: 'a used reset link', after: [401, 401], isDoneThere: true },
      act: async ({ id }) => {
        const made = await admin.request('POST', `/ws/users/${id}/reset`)
        const { data } = (await made.json()) as { data: { link: string }[] }
        const path = (data[0]?.link ?? '').slice(here.url.length)
        // Created on the first node, used on the second.
        const body = JSON.stringify({ password: NEW_PASSWORD })
        const used = await send(there.url, { method: 'POST', path, body })
        expect(used.status, used.text).toBe(200)
        expect((await send(here.url, { method: 'POST', path, body })).status).toBe(404)
      },
    },
  ]

  test.each(CASES)(
    '$what takes effect on the other node within a second',
    async ({ roles = ['editor'], before = 200, after, isDoneThere = false, act }) => {
      const who = await somebody(roles)
      // Fills the cache of the second node: a cached session must not count.
      expect([await statusOf(who.cookie), await statusOf(who.other)]).toEqual([before, before])
      await act(who)
      there.clock.letASecondPass()
      expect([await statusOf(who.cookie), await statusOf(who.other)]).toEqual(after)
      // The reset link was used on the second node, so the first one needs a second, too.
      if (isDoneThere) here.clock.letASecondPass()
      expect([await statusOf(who.cookie, here.url), await statusOf(who.other, here.url)]).toEqual(after)
    },
  )

  test('the mutant whose session cache never expires is caught', async () => {
    const trusting = { ...there.app, sessionCache: new TrustingSessionCache() }
    await withServer({ ...there, app: trusting }, {}, async (url) => {
      const who = await somebody(['editor'])
      expect(await statusOf(who.cookie, url)).toBe(200)
      await asUser(here.url, who.cookie).get('/logout')
      there.clock.letASecondPass()
      expect([await statusOf(who.cookie, url), await statusOf(who.cookie)]).toEqual([200, 401])
    })
  })

  test('the mutant whose authorizer misses changes of permissions is caught', async () => {
    const sessionCache = new SessionCache(() => there.clock.elapsed())
    const deaf = { ...there.app, sessionCache, authorizer: new DeafAuthorizer(there.app) }
    await withServer({ ...there, app: deaf }, {}, async (url) => {
      const who = await somebody(['editor'])
      expect(await statusOf(who.cookie, url)).toBe(200)
      await change(who, { roles: [] })
      there.clock.letASecondPass()
      expect([await statusOf(who.cookie, url), await statusOf(who.cookie)]).toEqual([200, 404])
    })
  })
})
