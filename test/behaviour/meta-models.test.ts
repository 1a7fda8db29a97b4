// Served models are records themselves: clients can search them, and only the service writes them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { createApp } from '../../src/service/create-app.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { changesSince } from '../log.js'
import type { Records } from '../../src/wire.js'
import { models } from '../models.js'
import {
  enter,
  newLocation,
  onEveryEngine,
  onEveryTarget,
  catchError,
  startService,
  type Service,
} from '../targets.js'

const META = 'com.axelor.meta.db.MetaModel'
/** The public models of the service itself. */
const AUTH = ['User', 'Role', 'Permission', 'ApiKey', 'Event'].map((name) => `verso.auth.${name}`)
const SYSTEM = [META, 'com.axelor.meta.db.MetaFile', ...AUTH, 'verso.feed.Webhook']
const NAMES = models.map(({ definition }) => (definition as { name: string }).name)
const Rule = defineModel({
  name: 'meta.Rule',
  fields: {
    about: { type: 'many-to-one', target: META },
    others: { type: 'many-to-many', target: META },
  },
})
const withRule = [...models, { file: 'rule.ts', definition: Rule }]
const everything = { limit: 1_000, fields: ['fullName'] }

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  beforeAll(async () => {
    service = await startService(engine, { models: withRule })
    records = await enter(service, transport)
  })
  afterAll(() => service.close())

  test('a MetaModel exists for each public model, and for no other', async () => {
    const { total, data } = await records.search(META, everything)
    expect(data.map(({ fullName }) => fullName).toSorted()).toEqual(
      [...NAMES, Rule.name, ...SYSTEM].toSorted(),
    )
    expect(total).toBe(data.length)
  })

  test('MetaModels can be searched by name, full name and like, sorted and paged', async () => {
    const like = (fieldName: string, value: string) => ({
      data: { criteria: [{ fieldName, operator: 'like', value }] },
      sortBy: ['-name'],
    })
    const found = await records.search(META, like('fullName', 'rel.%'))
    expect(found.data.map(({ name }) => name)).toEqual([
      ...['Person', 'Door', 'Company', 'Circle', 'Badge', 'Address'],
    ])
    const page = await records.search(META, { ...like('fullName', 'rel.%'), offset: 2, limit: 2 })
    expect([page.total, page.data.map(({ name }) => name)]).toEqual([6, ['Company', 'Circle']])
    const { data } = await records.find(META, { filter: "name = 'MetaModel'" })
    expect(data).toMatchObject([{ name: 'MetaModel', fullName: META, packageName: 'com.axelor.meta.db' }])
    expect(await records.read(META, data[0]?.id ?? 0)).toMatchObject({ version: 0, createdBy: null })
  })

  test('no verb of a client writes a MetaModel', async () => {
    const { data } = await records.find(META, { limit: 1 })
    const [first = { id: 0, version: 0 }] = data
    const attempts = [
      () => records.create(META, { name: 'X', fullName: 'a.X', packageName: 'a' }),
      () => records.update(META, first.id, { version: 0, name: 'X' }),
      () => records.save(META, [{ id: first.id, version: 0, name: 'X' }]),
      () => records.remove(META, first.id),
      () => records.removeAll(META, [{ id: first.id }]),
      () => records.updateMass(META, { data: { _domain: 'id > 0' }, values: { name: 'X' } }),
    ]
    for (const attempt of attempts) expect((await catchError(attempt())).kind).toBe('forbidden')
    expect(await records.find(META, { limit: 1 })).toMatchObject({ data })
  })

  test('a MetaModel cannot be written through a record that refers to it', async () => {
    const [first = { id: 0 }] = (await records.find(META, { limit: 1 })).data
    const edits = [
      { id: first.id, version: 0, name: 'X' },
      { name: 'X', fullName: 'a.X', packageName: 'a' },
    ]
    for (const about of edits)
      for (const data of [{ about }, { others: [about] }])
        expect((await catchError(records.create(Rule.name, data))).kind).toBe('invalid')
    const { data: rule } = await records.create(Rule.name, {
      about: { id: first.id },
      others: [{ id: first.id }],
    })
    expect(rule).toMatchObject({ about: { id: first.id, $version: 0 } })
    const again = await records.update(Rule.name, rule.id, rule)
    expect(again.data.version).toBe(1)
  })

  test('a MetaModel can be verified and copied', async () => {
    const [first = { id: 0 }] = (await records.find(META, { limit: 1 })).data
    await records.verify(META, { id: first.id, version: 0 })
    expect(Object.keys(await records.copy(META, first.id))).toEqual(['name', 'fullName', 'packageName'])
  })
})

describe('MetaModels over restarts', () => {
  onEveryEngine((engine) => {
    const idsOf = async (service: Service) => {
      const { data } = await (await enter(service, 'direct')).search(META, everything)
      return new Map(data.map(({ id, fullName }) => [String(fullName), id]))
    }

    test('a restart adds MetaModels of new models, deletes those of removed ones, and keeps the other ids', async () => {
      const location = await newLocation(engine)
      const first = await startService(engine, { location })
      const before = await idsOf(first)
      await first.close()
      const fewer = [...models.slice(1), { file: 'rule.ts', definition: Rule }]
      const second = await startService(engine, { location, models: fewer })
      const after = await idsOf(second)
      const changes = await changesSince(second.app.db.reader, 0, 1_000)
      expect([...after.keys()].toSorted()).toEqual([...NAMES.slice(1), Rule.name, ...SYSTEM].toSorted())
      for (const name of [...NAMES.slice(1), ...SYSTEM]) expect(after.get(name)).toBe(before.get(name))
      const gone = changes.filter(({ model, action }) => model === META && action === 'delete')
      expect(gone).toMatchObject([{ id: before.get(NAMES[0] ?? ''), version: 1, by: null }])
      await second.close()
      location.remove()
    })

    test('a start with the same models, or with none as for a command, writes no MetaModels', async () => {
      const location = await newLocation(engine)
      const service = await startService(engine, { location })
      const before = await idsOf(service)
      const count = async () => (await changesSince(service.app.db.reader, 0, 10_000)).length
      const logged = await count()
      const command = await createApp({ settings: { db: location.url }, models: [] })
      await command.close()
      const again = await createApp({ settings: { db: location.url }, models })
      await again.close()
      expect([await idsOf(service), await count()]).toEqual([before, logged])
      await service.close()
      location.remove()
    })

    test('nodes that start concurrently create each MetaModel once', async () => {
      const location = await newLocation(engine)
      const apps = await Promise.all(
        Array.from({ length: 4 }, () => createApp({ settings: { db: location.url }, models })),
      )
      for (const app of apps) {
        const { data } = await recordsForPrincipal(app, SERVICE_PRINCIPAL).search(META, everything)
        expect(data.map(({ fullName }) => fullName).toSorted()).toEqual([...NAMES, ...SYSTEM].toSorted())
      }
      await Promise.all(apps.map((app) => app.close()))
      location.remove()
    })

    test('the MetaModel of a removed model remains as long as a record refers to it', async () => {
      const location = await newLocation(engine)
      const first = await startService(engine, { location, models: withRule })
      const ids = await idsOf(first)
      const [one, other] = [ids.get(NAMES[0] ?? '') ?? 0, ids.get(NAMES[1] ?? '') ?? 0]
      const records = await enter(first, 'direct')
      const { data: rule } = await records.create(Rule.name, { about: { id: one }, others: [{ id: other }] })
      await first.close()
      const second = await startService(engine, { location, models: withRule.slice(3) })
      const after = await enter(second, 'direct')
      expect(await after.read(Rule.name, rule.id)).toMatchObject({
        about: { id: one },
        others: [{ id: other }],
      })
      const kept = await idsOf(second)
      expect([kept.get(NAMES[0] ?? ''), kept.get(NAMES[1] ?? ''), kept.has(NAMES[2] ?? '')]).toEqual([
        ...[one, other, false],
      ])
      await after.remove(Rule.name, rule.id)
      await second.close()
      const third = await startService(engine, { location, models: withRule.slice(3) })
      expect((await idsOf(third)).has(NAMES[0] ?? '')).toBe(false)
      await third.close()
      location.remove()
    })
  })
})
