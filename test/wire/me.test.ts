// The own account, and what administrators do with other accounts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  API_KEY_MODEL,
  EVENT_MODEL,
  PERMISSION_MODEL,
  ROLE_MODEL,
} from '../../src/model/catalog/auth-models.js'
import { buildPairKey } from '../../src/service/auth/throttle.js'
import { addUser, setUserDisabled } from '../../src/service/auth/accounts.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { createRecord } from '../../src/service/records/save.js'
import type { OpenSession } from '../../src/service/auth/sessions.js'
import type { OwnAccount } from '../../src/service/auth/own-account.js'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import {
  asUser,
  credentials,
  envelope,
  expectError,
  json,
  login,
  OK,
  openSession,
  send,
  withServer,
} from './exchange.js'
import type { Answer } from './exchange.js'
import { createContext } from '../../src/service/context/context.js'

const NEW_PASSWORD = 'an entirely new password'
const TRUSTING = { http: { trustProxy: ['127.0.0.1'] } }

onEngineOfTier((engine) => {
  let service: Service
  let count = 0

  beforeAll(async () => {
    service = await startService(engine, TRUSTING)
    const { app } = service
    const role = await createRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(ROLE_MODEL), {
      name: 'clerk',
    })
    for (const permission of [
      { model: 'crm.Contact', canRead: true, readable: ['email', 'firstName'] },
      {
        model: 'crm.Contact',
        canRead: true,
        canUpdate: true,
        condition: 'createdBy = :user',
        readable: ['notes'],
        writable: ['notes'],
      },
      { model: 'test.Note', canRead: true, canCreate: true, canExport: true },
    ])
      await createRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(PERMISSION_MODEL), {
        role: { id: role.data.id },
        ...permission,
      })
  })
  beforeEach(() => service.app.db.transaction((tx) => tx.run('delete from verso_login_failure')))
  afterAll(() => service.close())

  const dataOf = <T>(answer: Answer): T[] => {
    expect(answer.status, answer.text).toBe(200)
    return (json(answer) as { data: T[] }).data
  }
  const statusOf = async (cookie: string) => (await asUser(service.url, cookie).get('/ws/me')).status
  const newUser = async (roles: readonly string[] = ['clerk']) => {
    const username = `user${++count}`
    const id = await addUser(service.app, { username, password: PASSWORD, roles })
    const enter = (headers = {}) => openSession(service.url, headers, credentials(username))
    return { id, username, enter, cookie: await enter() }
  }
  const eventsOf = async (userId: number) => {
    const criteria = [{ fieldName: 'user', operator: '=', value: userId }]
    const found = await recordsForPrincipal(service.app, SERVICE_PRINCIPAL).search(EVENT_MODEL, {
      data: { criteria },
      sortBy: ['id'],
    })
    return found.data.map(({ kind }) => kind)
  }

  describe('/ws/me', () => {
    test('/ws/me answers the account and its permissions', async () => {
      const { id, username, cookie } = await newUser()
      const [me] = dataOf<OwnAccount>(await asUser(service.url, cookie).get('/ws/me'))
      expect(me).toMatchObject({
        id,
        version: 0,
        username,
        name: username,
        roles: ['clerk'],
        admin: false,
        via: 'session',
      })
      expect(Date.parse(me?.lastLoginOn ?? '')).toBeGreaterThan(0)
      const nothing = { read: false, create: false, update: false, remove: false, export: false }
      expect(me?.permissions.filter(({ model }) => !model.startsWith('com.'))).toEqual([
        {
          ...{ ...nothing, model: 'crm.Contact', read: true, update: true, conditional: true },
          ...{ readable: ['email', 'firstName', 'notes'], writable: ['notes'] },
        },
        {
          ...{ ...nothing, model: 'test.Note', read: true, create: true, export: true, conditional: false },
          ...{ readable: null, writable: null },
        },
      ])
    })

    test('/ws/me lists only fields that can be read and written, whatever the permissions name', async () => {
      const { app } = service
      const may = { canRead: true, canUpdate: true }
      const permissions = [
        // They may read neither companies nor circles.
        { ...may, model: 'rel.Person', readable: ['id', 'name', 'company'], writable: ['name', 'circles'] },
        {
          ...may,
          model: 'crm.*',
          readable: ['email', 'fullName', 'pin'],
          writable: ['email', 'fullName', 'pin'],
        },
      ]
      await createRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(ROLE_MODEL), {
        name: 'outsider',
        permissions,
      })
      const { cookie } = await newUser(['outsider'])
      const [me] = dataOf<OwnAccount>(await asUser(service.url, cookie).get('/ws/me'))
      const fieldsOf = (name: string) => me?.permissions.find(({ model }) => model === name)
      expect(fieldsOf('rel.Person')).toMatchObject({ readable: ['id', 'name'], writable: ['name'] })
      expect(fieldsOf('crm.Contact')).toMatchObject({
        readable: ['email', 'fullName'],
        writable: ['email', 'pin'],
      })
    })

    test('/ws/me lists every model for an administrator', async () => {
      const [me] = dataOf<OwnAccount>(await asUser(service.url, await openSession(service.url)).get('/ws/me'))
      expect([me?.admin, me?.roles]).toEqual([true, ['administrator']])
      expect(me?.permissions.map(({ model }) => model)).toEqual(
        service.app.catalog.storedModels.map(({ name }) => name).sort(),
      )
      expect(me?.permissions.find(({ model }) => model === 'crm.Contact')).toEqual({
        ...{ model: 'crm.Contact', read: true, create: true, update: true, remove: true, export: true },
        ...{ readable: null, writable: null, conditional: false },
      })
      // Only /ws/me/keys can create keys.
      const ofKeys = me?.permissions.find(({ model }) => model === API_KEY_MODEL)
      expect(ofKeys).toMatchObject({ create: false, update: true, remove: true })
      // Only the service writes events.
      expect(me?.permissions.find(({ model }) => model === EVENT_MODEL)).toMatchObject({
        read: true,
        create: false,
      })
    })

    test('/ws/me answers the kind of authentication', async () => {
      await withServer(service, { basicAuth: true }, async (url) => {
        const authorization = `Basic ${Buffer.from(`${USERNAME}:${PASSWORD}`).toString('base64')}`
        const [me] = dataOf<OwnAccount>(await send(url, { path: '/ws/me', headers: { authorization } }))
        expect(me?.via).toBe('basic')
      })
    })

    test('/ws/me and the paths below it need a session, allow only their methods, and reject cross-site writes', async () => {
      const { cookie, id } = await newUser()
      const paths = [
        '/ws/me',
        '/ws/me/password',
        '/ws/me/sessions',
        '/ws/me/sessions/x',
        `/ws/users/${id}/sessions`,
        `/ws/users/${id}/reset`,
      ]
      for (const path of paths) {
        for (const method of ['GET', 'POST', 'DELETE', 'HEAD', 'OPTIONS'])
          expect((await send(service.url, { method, path })).status, `${method} ${path}`).toBe(401)
      }
      const me = asUser(service.url, cookie)
      expect((await me.ask('HEAD', '/ws/me')).status).toBe(200)
      expect((await me.ask('OPTIONS', '/ws/me/sessions')).headers.allow).toBe('GET, DELETE, HEAD, OPTIONS')
      expectError(await me.ask('POST', '/ws/me'), 405, 'method')
      const elsewhere = { 'sec-fetch-site': 'cross-site' }
      expectError(
        await me.ask('POST', '/ws/me/password', { old: PASSWORD, new: NEW_PASSWORD }, elsewhere),
        403,
        'forbidden',
      )
      expectError(await me.ask('DELETE', '/ws/me/sessions', undefined, elsewhere), 403, 'forbidden')
    })
  })

  describe('/ws/me/password', () => {
    const change = (cookie: string, data: unknown, headers = {}) =>
      asUser(service.url, cookie).ask('POST', '/ws/me/password', data, headers)

    test('a change of the own password keeps this session and ends all others', async () => {
      const { id, username, enter, cookie } = await newUser()
      const other = await enter()
      expect((await change(cookie, { old: PASSWORD, new: NEW_PASSWORD })).text).toBe(OK)
      expect([await statusOf(cookie), await statusOf(other)]).toEqual([200, 401])
      expect((await login(service.url, {}, credentials(username))).status).toBe(401)
      expect((await login(service.url, {}, credentials(username, NEW_PASSWORD))).status).toBe(200)
      expect(await eventsOf(id)).toEqual(['login', 'login', 'password-changed', 'login-failed', 'login'])
      // Without the `data` envelope, too.
      const bare = await send(service.url, {
        ...{
          method: 'POST',
          path: '/ws/me/password',
          headers: { cookie, 'content-type': 'application/json' },
        },
        body: JSON.stringify({ old: NEW_PASSWORD, new: PASSWORD }),
      })
      expect(bare.text).toBe(OK)
      expect(await statusOf(cookie)).toBe(200)
    })

    test('a wrong old password counts as a failed login', async () => {
      const { cookie, username } = await newUser()
      const from = { 'x-forwarded-for': '10.1.1.1' }
      expectError(await change(cookie, { old: 'wrong', new: NEW_PASSWORD }, from), 403, 'forbidden')
      const key = buildPairKey(username, '10.1.1.1')
      const counted = await service.app.db.reader.all(
        'select failures from verso_login_failure where key = ?',
        [key],
      )
      expect(counted).toEqual([{ failures: 1 }])
      await service.app.db.transaction((tx) =>
        tx.run('update verso_login_failure set failures = 30 where key = ?', [key]),
      )
      const rejected = await change(cookie, { old: PASSWORD, new: NEW_PASSWORD }, from)
      expectError(rejected, 429, 'too-many')
      expect(Number(rejected.headers['retry-after'])).toBeGreaterThan(0)
      expect((await change(cookie, { old: PASSWORD, new: NEW_PASSWORD })).status).toBe(200)
    })

    test('a new password has to follow the rules, and to differ from the old one', async () => {
      const { cookie, username } = await newUser()
      const rejected = await change(cookie, { old: PASSWORD, new: 'short' })
      expectError(rejected, 422, 'invalid')
      expect(envelope(rejected)).toMatchObject({
        errors: { new: 'must have at least 12 characters' },
        data: { message: 'The new password must have at least 12 characters' },
      })
      const same = await change(cookie, { old: PASSWORD, new: PASSWORD })
      expectError(same, 422, 'invalid')
      expect(envelope(same)).toMatchObject({ errors: { new: 'must differ from the old password' } })
      // The response does not reveal the old password.
      expectError(await change(cookie, { old: NEW_PASSWORD, new: NEW_PASSWORD }), 403, 'forbidden')
      for (const data of [{}, { old: PASSWORD }, { old: 1, new: 2 }, [], 'x'])
        expectError(await change(cookie, data), 400, 'bad-request')
      expect((await login(service.url, {}, credentials(username))).status).toBe(200)
    })
  })

  describe('sessions', () => {
    test('a user can list their sessions and end one or all others; the listed ids are not session ids', async () => {
      const { id, enter, cookie } = await newUser()
      const phone = await enter({ 'user-agent': `Phone/1 ${'x'.repeat(300)}`, 'x-forwarded-for': '10.2.2.2' })
      const third = await enter()
      const me = asUser(service.url, cookie)
      const sessions = dataOf<OpenSession>(await me.get('/ws/me/sessions'))
      expect(sessions).toHaveLength(3)
      expect(sessions.filter(({ current }) => current)).toHaveLength(1)
      const onPhone = sessions.find(({ address }) => address === '10.2.2.2')
      expect([onPhone?.agent?.length, onPhone?.agent?.startsWith('Phone/1'), onPhone?.current]).toEqual([
        200,
        true,
        false,
      ])
      for (const { id: shown, createdOn, lastSeenOn } of sessions) {
        expect(await statusOf(`JSESSIONID=${shown}`)).toBe(401)
        expect(phone + third + cookie).not.toContain(shown)
        expect(Date.parse(createdOn)).toBeLessThanOrEqual(Date.parse(lastSeenOn))
      }
      expect((await me.ask('DELETE', `/ws/me/sessions/${onPhone?.id}`)).text).toBe(OK)
      expect([await statusOf(phone), await statusOf(third)]).toEqual([401, 200])
      expectError(await me.ask('DELETE', `/ws/me/sessions/${onPhone?.id}`), 404, 'not-found')
      expect((await me.ask('DELETE', '/ws/me/sessions')).text).toBe(OK)
      expect([await statusOf(third), await statusOf(cookie)]).toEqual([401, 200])
      expect((await eventsOf(id)).slice(3)).toEqual(['sessions-ended', 'sessions-ended'])
    })

    test('only administrators can list and end the sessions of other users', async () => {
      const mine = await newUser()
      const victim = await newUser(['editor'])
      const admin = asUser(service.url, await openSession(service.url))
      const path = `/ws/users/${victim.id}/sessions`
      const [theirs] = dataOf<OpenSession>(await admin.get(path))
      const me = asUser(service.url, mine.cookie)
      expectError(await me.ask('DELETE', `/ws/me/sessions/${theirs?.id}`), 404, 'not-found')
      for (const [method, there] of [
        ['GET', path],
        ['DELETE', path],
        ['POST', `/ws/users/${victim.id}/reset`],
        ['GET', `/ws/users/${mine.id}/sessions`],
      ] as const)
        expectError(await me.ask(method, there), 403, 'forbidden')
      expect(await statusOf(victim.cookie)).toBe(200)
      expect((await admin.ask('DELETE', path)).text).toBe(OK)
      expect(await statusOf(victim.cookie)).toBe(401)
      expect(dataOf(await admin.get(path))).toEqual([])
      for (const unknown of ['999999', '0', 'x'])
        expectError(await admin.get(`/ws/users/${unknown}/sessions`), 404, 'not-found')
    })

    test('expired sessions are not listed', async () => {
      const { enter, cookie, id } = await newUser()
      await enter()
      await service.app.db.transaction((tx) =>
        tx.run(
          'update verso_session set created_ms = 0 where user_id = ? and address is not null and hash <> (select max(hash) from verso_session where user_id = ?)',
          [id, id],
        ),
      )
      const admin = asUser(service.url, await openSession(service.url))
      expect(dataOf(await admin.get(`/ws/users/${id}/sessions`))).toHaveLength(1)
      expect(cookie).not.toBe('')
    })
  })

  describe('reset links', () => {
    const makeLink = async (id: number) => {
      const admin = asUser(service.url, await openSession(service.url))
      const [made] = dataOf<{ link: string; expiresOn: string }>(
        await admin.ask('POST', `/ws/users/${id}/reset`),
      )
      return {
        path: (made?.link ?? '').slice(service.url.length),
        expiresOn: made?.expiresOn ?? '',
        link: made?.link ?? '',
      }
    }
    const post = (path: string, password: unknown, headers = {}) =>
      send(service.url, {
        method: 'POST',
        path,
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ password }),
      })
    const get = (path: string, headers = {}) => send(service.url, { path, headers })

    test('a reset link sets a password once, and ends every session', async () => {
      const { id, username, cookie } = await newUser()
      const { path, link, expiresOn } = await makeLink(id)
      expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/reset\?token=[\w-]{43}$/)
      const dayMs = 24 * 60 * 60_000
      expect(Math.abs(Date.parse(expiresOn) - service.clock.now() - dayMs)).toBeLessThan(60_000)
      const page = await get(path)
      expect([page.status, page.headers['referrer-policy'], page.headers['cache-control']]).toEqual([
        200,
        'strict-origin',
        'no-store',
      ])
      expect(page.headers['content-security-policy']).toContain(`default-src 'none'`)
      expect(page.text).not.toContain(path.slice(-43))
      expectError(await post(path, 'short'), 422, 'invalid')
      expectError(await post(path, 1), 400, 'bad-request')
      expectError(await post(path, NEW_PASSWORD, { 'sec-fetch-site': 'cross-site' }), 403, 'forbidden')
      expect(await statusOf(cookie)).toBe(200)
      expect((await post(path, NEW_PASSWORD)).text).toBe(OK)
      expect(await statusOf(cookie)).toBe(401)
      expectError(await post(path, 'yet another password'), 404, 'not-found')
      expectError(await get(path), 404, 'not-found')
      expect((await login(service.url, {}, credentials(username, NEW_PASSWORD))).status).toBe(200)
      expect(await eventsOf(id)).toEqual(['login', 'reset-link-made', 'password-changed', 'login'])
    })

    test('a reset link cannot be created for a disabled account', async () => {
      const { id, username } = await newUser()
      await setUserDisabled(service.app, username, true)
      const admin = asUser(service.url, await openSession(service.url))
      expectError(await admin.ask('POST', `/ws/users/${id}/reset`), 422, 'invalid')
      await setUserDisabled(service.app, username, false)
      expect((await get((await makeLink(id)).path)).status).toBe(200)
    })

    test('of concurrent uses of one reset link exactly one succeeds', async () => {
      const { id } = await newUser()
      const { path } = await makeLink(id)
      const answers = await Promise.all(
        Array.from({ length: 5 }, (_, index) => post(path, `${NEW_PASSWORD} ${index}`)),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404])
    })

    test('a reset link ends after a day, with a newer link, with a new password and with a disabled account', async () => {
      const { id, username, cookie } = await newUser()
      const first = await makeLink(id)
      const second = await makeLink(id)
      expect([(await get(first.path)).status, (await get(second.path)).status]).toEqual([404, 200])
      await asUser(service.url, cookie).ask('POST', '/ws/me/password', { old: PASSWORD, new: NEW_PASSWORD })
      expect((await get(second.path)).status).toBe(404)
      const third = await makeLink(id)
      await setUserDisabled(service.app, username, true)
      expect((await get(third.path)).status).toBe(404)
      await setUserDisabled(service.app, username, false)
      expect((await get(third.path)).status).toBe(404)
      const fourth = await makeLink(id)
      service.clock.advance(24 * 60 * 60_000)
      expect((await post(fourth.path, NEW_PASSWORD)).status).toBe(404)
    })

    test('a reset link is stored as a hash only, and guessing is throttled by address', async () => {
      const { id } = await newUser()
      const { path } = await makeLink(id)
      const rows = await service.app.db.reader.all('select * from verso_reset_link')
      expect(JSON.stringify(rows)).not.toContain(path.slice(-43))
      const from = { 'x-forwarded-for': '10.3.3.3' }
      const guesses = [undefined, '', 'x', 'a'.repeat(43)].map(
        (token) => `/reset${token === undefined ? '' : `?token=${token}`}`,
      )
      for (const guess of [...guesses, '/reset?token=a&token=b'])
        expectError(await get(guess, from), 404, 'not-found')
      await service.app.db.transaction((tx) =>
        tx.run('update verso_login_failure set failures = 30 where key = ?', [
          buildPairKey('reset link', '10.3.3.3'),
        ]),
      )
      expectError(await get(path, from), 429, 'too-many')
      expect((await get(path)).status).toBe(200)
    })

    test('a reset link uses the public URL and the base path', async () => {
      const { id } = await newUser()
      await withServer(service, { publicUrl: 'https://verso.example.org', basePath: '/v' }, async (url) => {
        const admin = asUser(url, await openSession(url))
        const [made] = dataOf<{ link: string }>(await admin.ask('POST', `/ws/users/${id}/reset`))
        expect(made?.link).toMatch(/^https:\/\/verso\.example\.org\/v\/reset\?token=/)
      })
    })
  })
})
