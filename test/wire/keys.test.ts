// API keys: creation, permissions and expiry.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createKey } from '../../src/service/auth/keys.js'
import { findCredentials } from '../../src/store/auth/accounts.js'
import { changesBetween } from '../log.js'
import { HttpClient } from '../http-client.js'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { envelope, expectError, json, JSON_BODY, only, send, withServer, type Sent } from './exchange.js'
import { createContext } from '../../src/service/context/context.js'

const CONTACTS = '/ws/rest/crm.Contact'
const KEYS = '/ws/rest/verso.auth.ApiKey'
const ALLOWED = 'https://partner.example'
const DAY_MS = 86_400_000

onEngineOfTier((engine) => {
  let service: Service
  let ada: HttpClient
  let bob: HttpClient
  let bobId: number

  beforeAll(async () => {
    service = await startService(engine, { http: { allowOrigins: [ALLOWED], trustProxy: ['127.0.0.1'] } })
    ada = await HttpClient.login(service.url, USERNAME, PASSWORD)
    bobId = await addUser(service.app, { username: 'bob', password: PASSWORD, roles: ['editor', 'reader'] })
    bob = await HttpClient.login(service.url, 'bob', PASSWORD)
  })
  beforeEach(() => service.app.db.transaction((tx) => tx.run('delete from verso_login_failure')))
  afterAll(() => service.close())

  const make = async (data: object, who = bob) => who.request('POST', '/ws/me/keys', { data })
  const made = async (data: object, who = bob) => {
    const response = await make(data, who)
    expect(response.status).toBe(200)
    const { data: [key] } = (await response.json()) as { data: [{ id: number; version: number; key: string }] } // prettier-ignore
    return key
  }
  const withKey = (key: string, sent: Sent) =>
    send(service.url, { ...sent, headers: { 'api-key': key, ...sent.headers } })
  const statusOf = async (key: string, sent: Sent = { path: CONTACTS }) => (await withKey(key, sent)).status
  const creation = { method: 'PUT', path: CONTACTS, headers: JSON_BODY, body: '{"data":{"firstName":"K"}}' }
  const lastUsedOn = async (id: number) => (await ada.read('verso.auth.ApiKey', id))['lastUsedOn']

  describe('a new key', () => {
    test('a new key is shown once, and never stored', async () => {
      const response = await make({ name: 'backup' })
      expect(response.headers.get('cache-control')).toBe('no-store')
      const body = (await response.json()) as { data: [Record<string, unknown>] }
      const { key, ...rest } = body.data[0]
      expect(key).toMatch(/^vk_[A-Za-z0-9_-]{43}$/)
      expect(rest).toMatchObject({ version: 0, name: 'backup', prefix: String(key).slice(0, 9), roles: ['editor', 'reader'] }) // prettier-ignore
      const days = (Date.parse(String(rest['expiresOn'])) - service.clock.now()) / DAY_MS
      expect(Math.round(days)).toBe(90)
      const listed = (await (await bob.request('GET', '/ws/me/keys')).json()) as { data: object[] }
      expect(listed.data).toContainEqual(rest)
      expect(JSON.stringify(listed)).not.toContain(key)
      const record = await ada.read('verso.auth.ApiKey', Number(rest['id']))
      expect(record).toMatchObject({ user: { id: bobId, name: 'bob' }, createdBy: { id: bobId } })
      expect(Object.keys(record)).not.toContain('hash')
    })

    test('a new key raises the version of its user, and both get a change in the log', async () => {
      const { version } = await ada.read('verso.auth.User', bobId)
      const { id } = await made({ name: 'noted' })
      const user = await ada.read('verso.auth.User', bobId)
      expect(user.version).toBe(version + 1)
      expect(user['keys']).toContainEqual(expect.objectContaining({ id, name: 'noted' }))
      const [change] = await changesBetween(service.app.db.reader, 'verso.auth.ApiKey', id, -1, 0)
      expect(change).toMatchObject({ action: 'create', by: { id: bobId } })
      expect(Object.keys(change?.changes ?? {}).sort()).toEqual([
        'expiresOn',
        'name',
        'prefix',
        'roles',
        'user',
      ])
      const [raised] = await changesBetween(
        service.app.db.reader,
        'verso.auth.User',
        bobId,
        version,
        version + 1,
      )
      expect(Object.keys(raised?.changes ?? {})).toEqual(['keys'])
    })

    test('a key is accepted in either header, and in both if they are equal', async () => {
      const { key } = await made({ name: 'headers' })
      const other = (await made({ name: 'other' })).key
      const read = (headers: Record<string, string>) => send(service.url, { path: CONTACTS, headers })
      expect((await read({ 'api-key': key })).status).toBe(200)
      expect((await read({ authorization: `Bearer ${key}` })).status).toBe(200)
      expect((await read({ authorization: `bearer  ${key}` })).status).toBe(200)
      expect((await read({ 'api-key': key, authorization: `Bearer ${key}` })).status).toBe(200)
      expectError(await read({ 'api-key': key, authorization: `Bearer ${other}` }), 400, 'bad-request')
    })

    test('a key acts as its user, who is recorded as the author of its writes', async () => {
      const { key } = await made({ name: 'writer' })
      expect(only(await withKey(key, creation))).toMatchObject({ createdBy: { id: bobId, name: 'bob' } })
      const info = await withKey(key, { path: '/ws/public/app/info' })
      expect(json(info)).toMatchObject({ user: { login: 'bob' } })
    })

    test('a key has only the roles that it was given', async () => {
      const reading = await made({ name: 'reading', roles: ['reader'] })
      const nothing = await made({ name: 'nothing', roles: [] })
      expect([await statusOf(reading.key), await statusOf(reading.key, creation)]).toEqual([200, 403])
      expectError(await withKey(nothing.key, { path: CONTACTS }), 404, 'unknown-model')
      const [reader] = (await ada.find('verso.auth.Role', { filter: "name = 'reader'" })).data
      const byId = await made({ name: 'by id', roles: [{ id: reader?.id }] })
      expect(await statusOf(byId.key, creation)).toBe(403)
    })

    test('the last use of a key is recorded once a minute, without a new version', async () => {
      const { id, key } = await made({ name: 'marked' })
      expect(await lastUsedOn(id)).toBeNull()
      await statusOf(key)
      await expect.poll(() => lastUsedOn(id)).not.toBeNull()
      const first = await lastUsedOn(id)
      await statusOf(key)
      service.clock.advance(30_000)
      await statusOf(key)
      expect(await lastUsedOn(id)).toBe(first)
      service.clock.advance(31_000)
      await statusOf(key)
      await expect.poll(() => lastUsedOn(id)).not.toBe(first)
      expect((await ada.read('verso.auth.ApiKey', id)).version).toBe(0)
      expect(await changesBetween(service.app.db.reader, 'verso.auth.ApiKey', id, -1, 9)).toHaveLength(1)
    })

    test.for([
      ['without a name', {}, 'name'],
      ['with an empty name', { name: '' }, 'name'],
      ['with a role that the user does not have', { name: 'x', roles: ['administrator'] }, 'roles[0]'],
      ['with an unknown role', { name: 'x', roles: ['editor', 'emperor'] }, 'roles[1]'],
      ['with null for roles', { name: 'x', roles: null }, 'roles'],
      ['that has expired', { name: 'x', expiresOn: '2020-01-01T00:00:00Z' }, 'expiresOn'],
      ['that lasts forever', { name: 'x', expiresOn: '9999-01-01T00:00:00Z' }, 'expiresOn'],
      ['with an invalid expiry', { name: 'x', expiresOn: 'soon' }, 'expiresOn'],
      ['with a hash', { name: 'x', hash: 'x' }, 'hash'],
      ['for another user', { name: 'x', user: 1 }, 'user'],
      ['with a typo in a field', { name: 'x', role: ['reader'] }, 'role'],
    ] as const)('a key %s is rejected with 422', async ([, data, field]) => {
      const response = await make(data)
      expect(response.status).toBe(422)
      expect(Object.keys(((await response.json()) as { errors: object }).errors)).toEqual([field])
    })

    test('a key cannot be created with an Idempotency-Key, because its response would be stored', async () => {
      const response = await bob.request(
        'POST',
        '/ws/me/keys',
        { data: { name: 'x' } },
        { 'idempotency-key': 'k' },
      )
      expect(response.status).toBe(400)
    })

    test('a key cannot create, list or remove keys', async () => {
      const { id, key } = await made({ name: 'no parent' })
      const sent: Sent[] = [
        { path: '/ws/me/keys' },
        { method: 'POST', path: '/ws/me/keys', headers: JSON_BODY, body: '{"data":{"name":"child"}}' },
        { method: 'DELETE', path: `/ws/me/keys/${id}` },
      ]
      for (const each of sent) expectError(await withKey(key, each), 403, 'forbidden')
    })
  })

  describe('wrong keys', () => {
    const wrong = `vk_${'A'.repeat(43)}`

    test.for([wrong, '', 'vk_', 'null', `${wrong}A`, `vk_${'é'.repeat(43)}`])(
      'the wrong key "%s" is rejected with 401, even beside a valid cookie',
      async (key) => {
        const sent = {
          path: CONTACTS,
          headers: { cookie: ada.cookie, 'api-key': Buffer.from(key).toString('latin1') },
        }
        const answer = await send(service.url, sent)
        expectError(answer, 401, 'unauthenticated')
        expect(answer.headers['www-authenticate']).toBe('Session realm="verso", Bearer realm="verso"')
        expect(answer.text).toContain('Unknown or expired API key')
        const bearer = await send(service.url, {
          path: CONTACTS,
          headers: { cookie: ada.cookie, authorization: `Bearer ${Buffer.from(key).toString('latin1')}` },
        })
        expectError(bearer, 401, 'unauthenticated')
      },
    )

    test('a wrong key is offered Basic in WWW-Authenticate with --basic-auth', async () => {
      await withServer(service, { basicAuth: true }, async (url) => {
        const { headers } = await send(url, { path: CONTACTS, headers: { 'api-key': wrong } })
        expect(headers['www-authenticate']).toBe(
          'Session realm="verso", Bearer realm="verso", Basic realm="verso"',
        )
      })
    })

    test('wrong keys are counted by address, noted once a minute, and do not block valid keys', async () => {
      const { key } = await made({ name: 'right' })
      const from = (address: string, sent: string) =>
        send(service.url, { path: CONTACTS, headers: { 'api-key': sent, 'x-forwarded-for': address } })
      const noted = async () =>
        (await ada.find('verso.auth.Event', { filter: "kind = 'key-refused' and address = '10.0.0.9'" }))
          .total
      for (let i = 0; i < 3; i++) expect((await from('10.0.0.9', wrong)).status).toBe(401)
      expect(await noted()).toBe(1)
      service.clock.advance(61_000)
      expect((await from('10.0.0.9', wrong)).status).toBe(401)
      expect(await noted()).toBe(2)
      await service.app.db.transaction((tx) =>
        tx.run("update verso_login_failure set failures = 300 where key = '10.0.0.9'"),
      )
      expectError(await from('10.0.0.9', wrong), 429, 'too-many')
      expect((await from('10.0.0.9', key)).status).toBe(200)
      expect((await from('10.0.0.8', wrong)).status).toBe(401)
    })
  })

  describe('keys from pages of other origins', () => {
    const browser = (origin: string) => ({ origin, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' })

    test('a page of an allowed origin can write with a key, after a preflight', async () => {
      const { key } = await made({ name: 'page' })
      const preflight = await send(service.url, {
        ...{ method: 'OPTIONS', path: CONTACTS },
        headers: {
          ...browser(ALLOWED),
          'access-control-request-method': 'PUT',
          'access-control-request-headers': 'api-key,content-type',
        },
      })
      expect(preflight.status).toBe(204)
      expect(preflight.headers['access-control-allow-origin']).toBe(ALLOWED)
      const allowed = String(preflight.headers['access-control-allow-headers']).toLowerCase()
      expect(allowed).toContain('api-key')
      expect(allowed).toContain('authorization')
      for (const header of [{ 'api-key': key }, { authorization: `Bearer ${key}` }]) {
        const headers = { ...JSON_BODY, ...browser(ALLOWED), ...header }
        const answer = await send(service.url, { ...creation, headers })
        expect(only(answer)).toMatchObject({ firstName: 'K' })
        expect(answer.headers['access-control-allow-origin']).toBe(ALLOWED)
      }
    })

    test('a page of another origin gets no CORS headers, with or without a key', async () => {
      const { key } = await made({ name: 'elsewhere' })
      const evil = browser('https://evil.example')
      const preflight = { ...evil, 'access-control-request-method': 'PUT' }
      const answers = [
        await send(service.url, { method: 'OPTIONS', path: CONTACTS, headers: preflight }),
        await send(service.url, { ...creation, headers: { ...JSON_BODY, ...evil, 'api-key': key } }),
      ]
      expect(answers.map(({ status }) => status)).toEqual([401, 200])
      for (const { headers } of answers)
        for (const name of Object.keys(headers)) expect(name).not.toMatch(/^access-control/)
    })

    test('a cross-site request with a cookie and a wrong key is rejected with 401', async () => {
      const headers = { ...JSON_BODY, ...browser(ALLOWED), cookie: ada.cookie, 'api-key': 'vk_wrong' }
      expectError(await send(service.url, { ...creation, headers }), 401, 'unauthenticated')
    })

    test('a cross-site login or logout with a key is rejected with 403', async () => {
      const { key } = await made({ name: 'no login' })
      for (const path of ['/callback', '/login.jsp', '/logout']) {
        const headers = { ...JSON_BODY, ...browser(ALLOWED), 'api-key': key }
        expectError(await send(service.url, { method: 'POST', path, headers, body: '{}' }), 403, 'forbidden')
      }
    })
  })

  describe('records of keys', () => {
    test('a key cannot be created as a record', async () => {
      const data = { name: 'x', expiresOn: '2030-01-01T00:00:00Z', roles: [], user: { id: 1 }, hash: 'x' }
      expect((await ada.request('PUT', KEYS, { data })).status).toBe(403)
      // No field error either: creation as a record is forbidden in any case.
      expect((await ada.request('PUT', KEYS, { data: {} })).status).toBe(403)
      expect((await ada.request('POST', KEYS, { records: [{ name: 'x' }] })).status).toBe(403)
      const { version } = await ada.read('verso.auth.User', bobId)
      const keys = [{ name: 'x', expiresOn: '2030-01-01T00:00:00Z' }]
      const inside = await ada.request('POST', `/ws/rest/verso.auth.User/${bobId}`, {
        data: { version, keys },
      })
      expect(inside.status).toBe(403)
    })

    test('a key cannot move to another user, or live longer than 400 days', async () => {
      const { id, version } = await made({ name: 'stays' })
      const user = await ada.read('verso.auth.User', 1)
      const moved = await ada.request('POST', '/ws/rest/verso.auth.User/1', {
        data: { version: user.version, keys: [{ id, version }] },
      })
      expect(moved.status).toBe(422)
      const longer = { version, expiresOn: '9999-01-01T00:00:00Z' }
      const answer = await ada.request('POST', `${KEYS}/${id}`, { data: longer })
      expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining('400 days')])
      const renamed = await ada.request('POST', `${KEYS}/${id}`, {
        data: { version, name: 'renamed', user: { id: 1 } },
      })
      expect(await renamed.json()).toMatchObject({ data: [{ name: 'renamed', user: { id: bobId } }] })
    })

    test('a key can be removed by its user and by administrators only', async () => {
      const [own, theirs] = [await made({ name: 'own' }), await made({ name: 'theirs' })]
      const strange = await made({ name: 'of Ada' }, ada)
      expect((await bob.request('DELETE', `/ws/me/keys/${strange.id}`)).status).toBe(404)
      expect((await bob.request('DELETE', `${KEYS}/${strange.id}`)).status).toBe(404)
      expect(await (await bob.request('DELETE', `/ws/me/keys/${own.id}`)).json()).toEqual({
        status: 0,
        data: [own.id],
      })
      expect((await ada.request('DELETE', `${KEYS}/${theirs.id}`)).status).toBe(200)
      expect([await statusOf(own.key), await statusOf(theirs.key), await statusOf(strange.key)]).toEqual([
        401, 401, 200,
      ])
    })

    test('an administrator cannot create a key for another user over HTTP, the command line can', async () => {
      const found = await findCredentials(service.app.db.reader, USERNAME)
      if (!found) throw new Error('the account of the tests is missing')
      const by = await service.app.authorizer.resolvePrincipal(found.user)
      await expect(
        createKey(createContext(service.app, by), { user: bobId, name: 'x' }),
      ).rejects.toMatchObject({
        kind: 'forbidden',
      })
      const { key } = await createKey(createContext(service.app, SERVICE_PRINCIPAL), {
        user: bobId,
        name: 'by nobody',
      })
      expect(await statusOf(key)).toBe(200)
    })
  })

  test('a key is rejected after its expiry', async () => {
    const expiresOn = new Date(service.clock.now() + 10_000).toISOString()
    const { key } = await made({ name: 'short', expiresOn })
    expect(await statusOf(key)).toBe(200)
    service.clock.advance(10_001)
    expect(envelope(await withKey(key, { path: CONTACTS })).data.kind).toBe('unauthenticated')
  })
})
