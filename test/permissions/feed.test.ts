// The feed delivers what a user may see, by the permissions of today and the values of that time.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { purgeHistory } from '../../src/service/maintenance/purge.js'
import type { Change, Records } from '../../src/wire.js'
import { countAnew, onEveryEngine, catchError, startService, type Service } from '../targets.js'
import { grantee, officeModels, PROJECT, rootOf, TEAM, type UserWithPermissions } from './office-fixture.js'

onEveryEngine((engine) => {
  let service: Service
  let root: Records

  beforeAll(async () => {
    service = await startService(engine, { models: officeModels })
    root = rootOf(service)
  })
  afterAll(() => service.close())

  /** The Changes that a user gets for `work`. */
  const told = async (who: UserWithPermissions, work: () => Promise<void>): Promise<readonly Change[]> => {
    const { next: since } = await root.changes({ limit: 1000 }).then(async (first) => {
      let page = first
      while (!page.isLast) page = await root.changes({ since: page.next, limit: 1000 })
      return page
    })
    await work()
    return (await who.client.changes({ since, limit: 1000 })).data
  }
  const make = async (data: object) => (await root.create(PROJECT, data)).data
  const change = async (id: number, data: object) => {
    const { version } = await root.read(PROJECT, id)
    await root.update(PROJECT, id, { version, ...data })
  }
  const inShort = (changes: readonly Change[]) =>
    changes.map(({ id, version, action, changes: made }) => [
      ...[id, version, action],
      Object.fromEntries(Object.entries(made).map(([name, { before, after }]) => [name, [before, after]])),
    ])

  test('the feed of a user without read permission is empty, and rejects the name of a model', async () => {
    const who = await grantee(service, [])
    expect(
      await told(who, async () => {
        await make({ name: 'unseen' })
      }),
    ).toEqual([])
    expect((await catchError(who.client.changes({ model: PROJECT }))).kind).toBe('unknown-model')
    const writer = await grantee(service, [{ model: PROJECT, canCreate: true }])
    expect((await catchError(writer.client.changes({ model: PROJECT }))).kind).toBe('forbidden')
  })

  test('the feed omits fields that the user may not read, also if nothing else changed', async () => {
    const who = await grantee(service, [{ model: PROJECT, canRead: true, readable: ['name'] }])
    let id = 0
    const changes = await told(who, async () => {
      ;({ id } = await make({ name: 'a', secret: 'hush' }))
      await change(id, { secret: 'hush, too' })
      await change(id, { name: 'b', secret: 'quiet' })
      await root.remove(PROJECT, id)
    })
    expect(inShort(changes)).toEqual([
      [id, 0, 'create', { name: [null, 'a'] }],
      [id, 1, 'update', {}],
      [id, 2, 'update', { name: ['a', 'b'] }],
      [id, 3, 'delete', { name: ['b', null] }],
    ])
    expect(JSON.stringify(changes)).not.toMatch(/hush|quiet/)
  })

  test('a record that becomes visible arrives whole in the feed, and one that becomes hidden as a delete', async () => {
    const who = await grantee(service, [{ model: PROJECT, canRead: true, condition: "region = 'north'" }])
    let id = 0
    const changes = await told(who, async () => {
      ;({ id } = await make({ name: 'a', region: 'south', secret: 'unseen' }))
      await change(id, { name: 'b', secret: 'seen' })
      await change(id, { region: 'north' })
      await change(id, { name: 'c' })
      await change(id, { region: 'east', name: 'd' })
      await change(id, { name: 'e' })
      await change(id, { region: 'north' })
      await root.remove(PROJECT, id)
    })
    expect(inShort(changes)).toEqual([
      [id, 2, 'update', { name: [null, 'b'], secret: [null, 'seen'], region: [null, 'north'] }],
      [id, 3, 'update', { name: ['b', 'c'] }],
      [id, 4, 'delete', { name: ['c', null], secret: ['seen', null], region: ['north', null] }],
      [id, 6, 'update', { name: [null, 'e'], secret: [null, 'seen'], region: [null, 'north'] }],
      [id, 7, 'delete', { name: ['e', null], secret: ['seen', null], region: ['north', null] }],
    ])
    expect(JSON.stringify(changes)).not.toMatch(/unseen|south|east/)
  })

  test('the feed delivers the delete of a record to its creator, by a condition on createdBy', async () => {
    const who = await grantee(service, [
      { model: PROJECT, canRead: true, canCreate: true, canRemove: true, condition: 'createdBy = :user' },
    ])
    let own = 0
    const changes = await told(who, async () => {
      own = (await who.client.create(PROJECT, { name: 'own' })).data.id
      await make({ name: 'of another' })
      await who.client.remove(PROJECT, own)
    })
    expect(changes.map(({ id, action }) => [id, action])).toEqual([
      [own, 'create'],
      [own, 'delete'],
    ])
  })

  test('the feed omits references to related records that the user may not see', async () => {
    const seen = (await root.create(TEAM, { name: 'seen' })).data.id
    const unseen = (await root.create(TEAM, { name: 'unseen' })).data.id
    const who = await grantee(service, [
      { model: PROJECT, canRead: true },
      { model: TEAM, canRead: true, condition: `id = ${seen}` },
    ])
    let id = 0
    const changes = await told(who, async () => {
      ;({ id } = await make({ name: 'a', team: { id: unseen } }))
      await change(id, { team: { id: seen } })
      await change(id, { team: { id: unseen } })
    })
    expect(inShort(changes)).toEqual([
      [id, 0, 'create', { name: [null, 'a'] }],
      [id, 1, 'update', { team: [null, { id: seen }] }],
      [id, 2, 'update', { team: [{ id: seen }, null] }],
    ])
  })

  test('a condition over a related record uses the reference of that time and the related record of today', async () => {
    const [north, south] = [
      (await root.create(TEAM, { name: 'north' })).data.id,
      (await root.create(TEAM, { name: 'south' })).data.id,
    ]
    const who = await grantee(service, [
      { model: TEAM, canRead: true },
      { model: PROJECT, canRead: true, condition: "team.name = 'north'" },
    ])
    let id = 0
    const changes = await told(who, async () => {
      ;({ id } = await make({ name: 'a', team: { id: south } }))
      await change(id, { name: 'b', team: { id: north } })
      await change(id, { name: 'c' })
    })
    expect(
      changes.filter(({ model }) => model === PROJECT).map(({ version, action }) => [version, action]),
    ).toEqual([
      [1, 'update'],
      [2, 'update'],
    ])
    expect(JSON.stringify(changes)).not.toContain('"a"')
  })

  test.each(["id > 0 and region = 'north'", "version >= 0 and region = 'north'"])(
    'the condition of a feed may use id and version: %s',
    async (condition) => {
      const who = await grantee(service, [{ model: PROJECT, canRead: true, condition }])
      const changes = await told(who, async () => {
        await make({ name: 'far', region: 'south' })
        await make({ name: 'near', region: 'north' })
      })
      expect(changes.map(({ changes: made }) => made['name']?.after)).toEqual(['near'])
    },
  )

  test('the feed is gone for a user with a condition if the history of a deleted record is purged', async () => {
    const condition = "region = 'north'"
    const who = await grantee(service, [{ model: PROJECT, canRead: true, condition }])
    const { id } = await make({ name: 'a', region: 'north' })
    const { seq: since } = await who.client.find(PROJECT)
    await root.remove(PROJECT, id)
    await purgeHistory(service.app, service.app.catalog.get(PROJECT), id)
    expect((await catchError(who.client.changes({ since }))).kind).toBe('gone')
    const { seq } = await who.client.find(PROJECT)
    expect((await who.client.changes({ since: seq })).data).toEqual([])
    const all = await grantee(service, [{ model: PROJECT, canRead: true }])
    expect((await all.client.changes({ since })).data).toMatchObject([{ id, action: 'delete', purged: true }])
  })

  test('the feed of a user who may see nothing advances to the end', async () => {
    const who = await grantee(service, [])
    const { next } = await who.client.changes({ since: 0 })
    expect(next).toBe((await root.changes({ since: next })).next)
  })

  test('the feed does not reveal the number of hidden Changes', async () => {
    const condition = "region = 'north'"
    const who = await grantee(service, [{ model: PROJECT, canRead: true, condition }])
    const { seq: since } = await who.client.find(PROJECT)
    const { id } = await make({ name: 'far', region: 'south' })
    for (let turn = 0; turn < 4; turn++) await change(id, { name: `far ${turn}` })
    const { seq } = await who.client.find(PROJECT)
    expect(await who.client.changes({ since, limit: 1, model: PROJECT })).toMatchObject({
      data: [],
      next: seq,
    })
    const seen = await make({ name: 'near', region: 'north' })
    await make({ name: 'near, too', region: 'north' })
    const { data, next } = await who.client.changes({ since, limit: 1, model: PROJECT })
    expect([data.map((each) => each.id), next]).toEqual([[seen.id], data[0]?.seq])
    expect((await who.client.changes({ since: next, limit: 1 })).data).toHaveLength(1)
  })

  test('a record deleted directly from its table does not block the feed', async () => {
    const condition = "region = 'north'"
    const who = await grantee(service, [{ model: PROJECT, canRead: true, condition }])
    const { seq: since } = await who.client.find(PROJECT)
    const { id } = await make({ name: 'lost', region: 'north' })
    await service.app.db.transaction((tx) => tx.run(`delete from "${PROJECT}" where "id" = ?`, [id]))
    await countAnew(service, PROJECT)
    const next = await make({ name: 'near', region: 'north' })
    const { data } = await who.client.changes({ since, model: PROJECT })
    expect(data.map((each) => each.id)).toEqual([next.id])
  })
})
