// /ws/rest/:model/perms: what a user may do, before they try.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import type { Records } from '../../src/wire.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { asUser, credentials, expectError, json, openSession } from './exchange.js'

const CONTACT = 'crm.Contact'
const PASSWORD = 'a password for whoever it is'

onEveryEngine((engine) => {
  let service: Service
  let own: number
  let foreign: number
  let clerk: ReturnType<typeof asUser>
  let admin: ReturnType<typeof asUser>

  beforeAll(async () => {
    service = await startService(engine)
    const records: Records = recordsForPrincipal(service.app, SERVICE_PRINCIPAL)
    await records.create('verso.auth.Role', {
      name: 'clerk',
      permissions: [
        { model: CONTACT, canRead: true, canCreate: true },
        { model: CONTACT, canUpdate: true, condition: 'createdBy = :user', writable: ['email'] },
        { model: 'verso.auth.User', canRead: true, canUpdate: true, canCreate: true, canRemove: true },
      ],
    })
    await addUser(service.app, { username: 'bob', password: PASSWORD, roles: ['clerk'] })
    foreign = (await records.create(CONTACT, { lastName: 'Foreign' })).data.id
    clerk = asUser(service.url, await openSession(service.url, {}, credentials('bob', PASSWORD)))
    admin = asUser(service.url, await openSession(service.url))
    const made = await clerk.create(CONTACT, { lastName: 'Own' })
    own = (json(made) as { data: [{ id: number }] }).data[0].id
  })
  afterAll(async () => {
    await service.close()
  })

  const permsOf = async (user: typeof clerk, query = '', model = CONTACT) =>
    (json(await user.get(`/ws/rest/${model}/perms${query}`)) as { data: string[] }).data

  test('perms answers the permissions for a model, and for one record', async () => {
    expect(await permsOf(clerk)).toEqual(['READ', 'CREATE', 'WRITE'])
    expect(await permsOf(clerk, `?id=${foreign}`)).toEqual(['READ', 'CREATE'])
    expect(await permsOf(clerk, `?id=${own}`)).toEqual(['READ', 'CREATE', 'WRITE'])
    expect(await permsOf(admin)).toEqual(['READ', 'CREATE', 'WRITE', 'REMOVE', 'EXPORT'])
    expect(await permsOf(admin, '', 'com.axelor.meta.db.MetaModel')).toEqual(['READ', 'EXPORT'])
  })

  test('only administrators can create and remove users, and change more than names, whatever is granted', async () => {
    expect(await permsOf(clerk, '', 'verso.auth.User')).toEqual(['READ', 'WRITE'])
    const { data } = json(await clerk.get('/ws/meta/fields/verso.auth.User')) as {
      data: { fields: { name: string; readonly?: boolean }[] }
    }
    const written = data.fields.filter((field) => field.readonly !== true).map(({ name }) => name)
    expect(written).toEqual(['name'])
  })

  test('perms with an action answers 200 or 403, and rejects unknown actions and records', async () => {
    expect((await clerk.get(`/ws/rest/${CONTACT}/perms?action=read`)).status).toBe(200)
    expectError(await clerk.get(`/ws/rest/${CONTACT}/perms?action=remove`), 403, 'forbidden')
    expectError(await clerk.get(`/ws/rest/${CONTACT}/perms?action=write&id=${foreign}`), 403, 'forbidden')
    expectError(await clerk.get(`/ws/rest/${CONTACT}/perms?action=dance`), 400, 'bad-request')
    expectError(await clerk.get(`/ws/rest/${CONTACT}/perms?id=987654`), 404, 'not-found')
    expectError(await clerk.get(`/ws/rest/${CONTACT}/perms?id=x`), 404, 'not-found')
    expectError(await clerk.get('/ws/rest/test.Everything/perms'), 404, 'unknown-model')
  })

  test('/ws/meta/fields contains the permissions for the model', async () => {
    const { data } = json(await clerk.get(`/ws/meta/fields/${CONTACT}`)) as { data: { perms: unknown } }
    expect(data.perms).toEqual({ read: true, write: true, create: true, remove: false, export: false })
  })
})
