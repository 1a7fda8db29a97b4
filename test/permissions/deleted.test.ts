// Deleted records are found by a user as their histories show them: by the permissions of today and their last values.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { purgeHistory } from '../../src/service/maintenance/purge.js'
import { openDatabase } from '../../src/store/open.js'
import type { Change, Records } from '../../src/wire.js'
import { fulfillingConditions } from '../mutants/history.js'
import { catchError, onEveryEngine, preparedLocation, startService, type Service } from '../targets.js'
import { grantee, officeModels, PROJECT, rootOf, TEAM, type UserWithPermissions } from './office-fixture.js'

const NORTH = { model: PROJECT, canRead: true, condition: "region = 'north'" }

onEveryEngine((engine) => {
  let service: Service
  let root: Records

  beforeAll(async () => {
    service = await startService(engine, { models: officeModels })
    root = rootOf(service)
  })
  afterAll(() => service.close())

  const deleteNew = async (data: object, by: Records = root) => {
    const { id } = (await by.create(PROJECT, data)).data
    await root.remove(PROJECT, id)
    return id
  }
  const find = async ({ client }: UserWithPermissions, query: object = {}): Promise<readonly Change[]> =>
    (await client.deleted(PROJECT, query)).data
  const findIds = async (who: UserWithPermissions, query: object = {}) =>
    (await find(who, query)).map(({ id }) => id)

  test('a user without read permission gets the error of a find', async () => {
    const none = await grantee(service, [])
    expect((await catchError(none.client.deleted(PROJECT))).kind).toBe('unknown-model')
    const writer = await grantee(service, [{ model: PROJECT, canCreate: true }])
    const error = await catchError(writer.client.deleted(PROJECT))
    expect([error.kind, error.message]).toEqual([
      'forbidden',
      (await catchError(writer.client.find(PROJECT))).message,
    ])
  })

  test('a user with a condition finds only deleted records whose last values fulfil it', async () => {
    const who = await grantee(service, [NORTH])
    const near = await deleteNew({ name: 'near', region: 'north' })
    await deleteNew({ name: 'far', region: 'south' })
    const { id: left } = (await root.create(PROJECT, { name: 'left', region: 'north' })).data
    await root.update(PROJECT, left, { version: 0, region: 'south' })
    await root.remove(PROJECT, left)
    expect(await findIds(who)).toEqual([near])
    expect(await findIds(who, { q: 'far' })).toEqual([])
  })

  test('the mutant that takes every condition as fulfilled is caught', async () => {
    const location = await preparedLocation(engine, officeModels)
    const database = await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 })
    const options = { models: officeModels, location, database: fulfillingConditions(database) }
    const mutant = await startService(engine, options)
    const who = await grantee(mutant, [NORTH])
    const all = rootOf(mutant)
    const { id } = (await all.create(PROJECT, { name: 'far', region: 'south' })).data
    await all.remove(PROJECT, id)
    expect(await findIds(who)).toEqual([id])
    await mutant.close()
    location.remove()
  })

  test('hidden fields of deleted records are neither shown nor searched', async () => {
    const who = await grantee(service, [{ model: PROJECT, canRead: true, readable: ['name'] }])
    const id = await deleteNew({ name: 'plain', secret: 'hush', region: 'west' })
    const [found] = await find(who, { limit: 1 })
    expect([found?.id, found?.changes]).toEqual([id, { name: { before: 'plain', after: null } }])
    expect(await findIds(who, { q: 'plain' })).toEqual([id])
    expect(await findIds(who, { q: 'hush' })).toEqual([])
  })

  test('a field that only some records show is searched only in those', async () => {
    const who = await grantee(service, [
      { model: PROJECT, canRead: true, readable: ['name'] },
      { ...NORTH, condition: "region = 'masked'" },
    ])
    const shown = await deleteNew({ name: 'one', secret: 'partly', region: 'masked' })
    await deleteNew({ name: 'two', secret: 'partly', region: 'other' })
    expect(await findIds(who, { q: 'partly' })).toEqual([shown])
    expect((await find(who, { q: 'one' }))[0]?.changes['secret']).toEqual({ before: 'partly', after: null })
    expect((await find(who, { q: 'two' }))[0]?.changes).toEqual({ name: { before: 'two', after: null } })
  })

  test('next does not depend on hidden deletes', async () => {
    const who = await grantee(service, [{ ...NORTH, condition: "region = 'next'" }])
    await deleteNew({ name: 'a', region: 'next' })
    const second = await deleteNew({ name: 'b', region: 'next' })
    await deleteNew({ name: 'c', region: 'hidden' })
    const page = await who.client.deleted(PROJECT, { limit: 1 })
    expect([page.data[0]?.id, page.next]).toEqual([second, page.data[0]?.seq])
    const last = await who.client.deleted(PROJECT, { limit: 1, before: page.next })
    expect([last.data.length, last.next]).toEqual([1, undefined])
  })

  test('a purged delete is found by users who see all records, and hidden from users with a condition', async () => {
    const [all, some] = [
      await grantee(service, [{ model: PROJECT, canRead: true }]),
      await grantee(service, [NORTH]),
    ]
    const id = await deleteNew({ name: 'purged', region: 'north' })
    await purgeHistory(service.app, service.app.catalog.get(PROJECT), id)
    expect((await find(all, { limit: 1 }))[0]).toMatchObject({ id, purged: true, changes: {} })
    expect(await findIds(some)).not.toContain(id)
  })

  test.for([
    "region = 'north'",
    'createdBy = :user',
    'updatedBy = :user',
    'updatedBy is null',
    'version > 0',
    "team.name = 'seen'",
    'team is null',
  ])('with the condition %s, a user finds the deletes that the histories show', async (condition) => {
    const team = (await root.create(TEAM, { name: 'seen' })).data.id
    const who = await grantee(service, [
      { model: PROJECT, canRead: true, condition },
      { model: PROJECT, canCreate: true, canUpdate: true, canRead: true, condition: `name = 'own'` },
      { model: TEAM, canRead: true, condition: "name = 'seen'" },
    ])
    await deleteNew({ name: 'own', region: 'south' }, who.client)
    await deleteNew({ name: 'with a team', team: { id: team } })
    await deleteNew({ name: 'north', region: 'north' })
    const own = (await root.create(PROJECT, { name: 'own', region: 'north' })).data.id
    await who.client.update(PROJECT, own, { version: 0, region: 'east' })
    await root.remove(PROJECT, own)
    const { id } = (await root.create(PROJECT, { name: 'changed', region: 'north' })).data
    await root.update(PROJECT, id, { version: 0, name: 'changed again' })
    await root.remove(PROJECT, id)
    const expected: Change[] = []
    for (const { id: each, seq } of (await root.deleted(PROJECT, { limit: 1_000 })).data) {
      const history = await who.client.history(PROJECT, each).catch(() => undefined)
      expected.push(...(history?.data.filter((change) => change.seq === seq) ?? []))
    }
    expect(expected.length).toBeGreaterThan(0)
    expect(await find(who, { limit: 1_000 })).toEqual(expected)
  })
})
