// Users cannot extend their own permissions, and invalid conditions grant nothing.
import http from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { API_KEY_MODEL, PERMISSION_MODEL } from '../../src/model/catalog/auth-models.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import type { Records } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import { onEveryEngine, PASSWORD, catchError, startService, type Service } from '../targets.js'
import { grantee, officeModels, PROJECT, rootOf, TEAM, type UserWithPermissions } from './office-fixture.js'

onEveryEngine((engine) => {
  let service: Service
  let root: Records

  beforeAll(async () => {
    service = await startService(engine, { models: officeModels })
    root = rootOf(service)
  })
  afterAll(() => service.close())

  const change = async (id: number, values: object) => {
    const { version } = await root.read(USER_MODEL, id)
    await root.update(USER_MODEL, id, { version, ...values })
  }

  /** Stores a condition directly, as a release without the rule may have done. */
  const storeCondition = async ({ id, role }: UserWithPermissions, condition: string) => {
    const update = `update "${PERMISSION_MODEL}" set "condition" = ? where "role" = ?`
    await service.app.db.transaction((tx) => tx.run(update, [condition, role]))
    await change(id, { name: 'So that rights are worked out again' })
  }

  describe('conditions on the user', () => {
    test("a condition may use the id of a user's related record, but no field that others can change", async () => {
      const role = (await grantee(service, [])).role
      const permission = { role: { id: role }, model: PROJECT, canRead: true }
      const error = await catchError(
        root.create(PERMISSION_MODEL, { ...permission, condition: 'region = :user.home.name' }),
      )
      expect([error.kind, Object.keys(error.details.errors ?? {})]).toEqual(['invalid', ['condition']])
      for (const condition of ['team = :user.home', 'team.id = :user.home.id'])
        await root.create(PERMISSION_MODEL, { ...permission, condition })
    })

    test("a stored condition on the name of a user's related record grants nothing", async () => {
      const home = (await root.create(TEAM, { name: 'North' })).data.id
      await root.create(PROJECT, { region: 'North' })
      const canRead = { model: PROJECT, canRead: true }
      const who = await grantee(service, [{ ...canRead, condition: 'region = :user.region' }], {
        home: { id: home },
        region: 'North',
      })
      expect((await who.client.find(PROJECT)).total).toBe(1)
      await storeCondition(who, 'region = :user.home.name')
      expect((await catchError(who.client.find(PROJECT))).kind).toBe('unknown-model')
    })
  })

  describe('length of conditions', () => {
    const FAR = 'company.people.circles.members.name is null'

    test('a condition may go over two lists, and three are rejected', async () => {
      const { role } = await grantee(service, [])
      const permission = { role: { id: role }, model: 'rel.Person', canRead: true }
      const error = await catchError(root.create(PERMISSION_MODEL, { ...permission, condition: FAR }))
      expect(error.details.errors?.['condition']).toMatch(
        /at most 4 relations, and at most 2 lists among them/,
      )
      const condition = 'company.people.circles.name is null'
      await root.create(PERMISSION_MODEL, { ...permission, condition })
    })

    test('a stored condition over three lists grants nothing', async () => {
      const who = await grantee(service, [{ model: 'rel.Person', canRead: true, condition: 'name is null' }])
      await root.create('rel.Person', {})
      expect((await who.client.find('rel.Person')).total).toBeGreaterThan(0)
      await storeCondition(who, FAR)
      expect((await catchError(who.client.find('rel.Person'))).kind).toBe('unknown-model')
    })
  })

  describe('users who may change their own account', () => {
    const OWN = { model: USER_MODEL, canRead: true, canUpdate: true, condition: 'id = :user' }
    const sees = { model: PROJECT, canRead: true, condition: 'region = :user.region' }
    const move = async ({ id, client }: UserWithPermissions, values: object) => {
      const { version } = await client.read(USER_MODEL, id)
      return client.update(USER_MODEL, id, { version, ...values })
    }

    test('a user may change their own name, but no field that conditions use', async () => {
      await root.create(PROJECT, { region: 'secretland' })
      const who = await grantee(service, [OWN, sees])
      expect((await catchError(move(who, { region: 'secretland' }))).kind).toBe('forbidden')
      expect((await who.client.find(PROJECT)).total).toBe(0)
      expect((await move(who, { name: 'Another name' })).data).toMatchObject({ name: 'Another name' })
    })

    test('a user may change a field of their account that a permission names as writable', async () => {
      const who = await grantee(service, [{ ...OWN, writable: ['region', 'username'] }])
      expect((await move(who, { region: 'openland' })).data).toMatchObject({ region: 'openland' })
      expect((await catchError(move(who, { name: 'x' }))).kind).toBe('forbidden')
      expect((await catchError(move(who, { username: 'somebody.else' }))).kind).toBe('forbidden')
    })
  })

  describe('API keys', () => {
    const keyFor = async (client: HttpClient, data: object): Promise<string> => {
      const made = await client.request('POST', '/ws/me/keys', { data })
      const body = (await made.json()) as { data: readonly { key: string }[] }
      return body.data[0]?.key ?? ''
    }
    const statusOf = async (key: string, path: string, method = 'GET') =>
      (await fetch(`${service.url}${path}`, { method, headers: { 'api-key': key } })).status

    test('an API key can neither read nor end the sessions of its user', async () => {
      const { client } = await grantee(service, [{ model: PROJECT, canRead: true }])
      const own = (await (await client.request('GET', '/ws/me/sessions')).json()) as {
        data: readonly { id: string }[]
      }
      for (const data of [{ name: 'none', roles: [] }, { name: 'all' }]) {
        const key = await keyFor(client, data)
        const statuses = [
          await statusOf(key, '/ws/me'),
          await statusOf(key, '/ws/me/sessions'),
          await statusOf(key, '/ws/me/sessions', 'DELETE'),
          await statusOf(key, `/ws/me/sessions/${own.data[0]?.id}`, 'DELETE'),
        ]
        expect(statuses).toEqual([200, 403, 403, 403])
      }
      expect((await client.request('GET', '/ws/me')).status).toBe(200)
    })

    test('an API key deleted while a request body arrives is rejected with 401', async () => {
      const { client } = await grantee(service, [{ model: TEAM, canRead: true, canCreate: true }])
      const key = await keyFor(client, { name: 'slow' })
      const { id } = (await root.find(API_KEY_MODEL, { filter: `name = 'slow'` })).data[0] ?? { id: 0 }
      const body = JSON.stringify({ data: { name: 'late' } })
      const { port } = new URL(service.url)
      const headers = { 'api-key': key, 'content-length': body.length, 'content-type': 'application/json' }
      const request = http.request({ port, method: 'PUT', path: `/ws/rest/${TEAM}`, headers })
      const answered = new Promise<number | undefined>((resolve, reject) => {
        request.on('error', reject)
        request.on('response', (response) => {
          response.resume()
          resolve(response.statusCode)
        })
      })
      request.write(body.slice(0, 5))
      // By now the service has recognized the key.
      await expect
        .poll(async () => (await root.read(API_KEY_MODEL, id))['lastUsedOn'], { timeout: 30_000 })
        .not.toBeNull()
      await root.remove(API_KEY_MODEL, id)
      request.end(body.slice(5))
      expect(await answered).toBe(401)
      expect((await root.find(TEAM, { filter: `name = 'late'` })).total).toBe(0)
    })

    test('an API key regains a role that its user lost and got again, but gets no new role', async () => {
      const who = await grantee(service, [{ model: PROJECT, canRead: true }])
      const other = await grantee(service, [{ model: TEAM, canRead: true }])
      const key = await keyFor(who.client, { name: 'k' })
      const seen = async () => [
        await statusOf(key, `/ws/rest/${PROJECT}`),
        await statusOf(key, `/ws/rest/${TEAM}`),
      ]
      expect(await seen()).toEqual([200, 404])
      await change(who.id, { roles: [{ id: other.role }] })
      expect(await seen()).toEqual([404, 404])
      await change(who.id, { roles: [{ id: other.role }, { id: who.role }] })
      expect(await seen()).toEqual([200, 404])
      const entered = await HttpClient.login(service.url, who.username, PASSWORD)
      expect((await entered.find(TEAM)).total).toBeGreaterThanOrEqual(0)
    })
  })
})
