import { expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Json } from '../../src/model/values/value.js'
import { models } from '../models.js'
import { onEveryTarget, catchError } from '../targets.js'
import { inShort, listOf, referenceOf, useRelatedService } from './related-service.js'

/** Has defaults, and a computed field that stores its input. */
const Task = defineModel({
  name: 'rel.Task',
  fields: {
    title: { type: 'string', required: true },
    state: { type: 'string', default: 'open' },
    company: { type: 'many-to-one', target: 'rel.Company' },
    helpers: { type: 'many-to-many', target: 'rel.Person' },
    next: { type: 'many-to-one', target: 'rel.Task' },
    seen: { type: 'json', computed: (record) => record as Json },
  },
  nameField: 'title',
})

onEveryTarget((engine, transport) => {
  const { service, records, make, change, read, changesOf, expectRolledBack } = useRelatedService(
    engine,
    transport,
    {
      models: [...models, { file: 'task.ts', definition: Task }],
    },
  )

  test('a reference is shown with id, $version and name, or as null', async () => {
    const company = await make('rel.Company', { name: 'Acme' })
    const person = await make('rel.Person', { name: 'Ada', company: { id: company.id } })
    const shown = { id: company.id, $version: 0, name: 'Acme' }
    expect(person).toMatchObject({ company: shown, boss: null, circles: [] })
    expect(person['company']).toEqual(shown)
    expect(person).not.toHaveProperty('badge')
    expect(await read('rel.Person', person.id)).toEqual(person)
    expect(company).toMatchObject({ addresses: [], seat: null, parent: null })
    expect(company).not.toHaveProperty('people')
  })

  test('a record with relations can be sent back as read', async () => {
    const company = await make('rel.Company', {
      name: 'Round',
      addresses: [{ city: 'Oslo' }, { city: 'Rome' }],
    })
    const person = await make('rel.Person', { company: { id: company.id }, circles: [{ name: 'Round' }] })
    for (const [model, record] of [
      ['rel.Person', person],
      ['rel.Company', company],
    ] as const) {
      const updatedBy = { id: 1, $version: 0, name: 'Ada' }
      expect(await change(model, record.id, record)).toEqual({
        ...record,
        ...{ version: 1, updatedOn: expect.any(String), updatedBy },
      })
    }
  })

  test('a reference by id does not change the related record', async () => {
    const company = await make('rel.Company', { name: 'Still' })
    const changes = await changesOf(() => make('rel.Person', { company: { id: company.id } }))
    expect(changes.map(({ model, changes: { company: to } }) => ({ model, to }))).toEqual([
      { model: 'rel.Person', to: { before: null, after: { id: company.id } } },
    ])
    expect(await read('rel.Company', company.id)).toEqual(company)
  })

  test('a reference sent back with $version stays a reference: its other fields are not written', async () => {
    const company = await make('rel.Company', { name: 'Kept', founded: '1900-01-01' })
    const sent = { id: company.id, $version: 7, name: 'Typed over', founded: null }
    const person = await make('rel.Person', { company: sent })
    expect(person['company']).toEqual({ id: company.id, $version: 0, name: 'Kept' })
    expect(await read('rel.Company', company.id)).toEqual(company)
  })

  test('an object without id creates the related record in the same transaction', async () => {
    const changes = await changesOf(() =>
      make('rel.Person', { name: 'New', company: { name: 'Made', addresses: [{ city: 'Bonn' }] } }),
    )
    const [company = { id: 0 }, address = { id: 0 }, person = { id: 0 }] = changes
    expect(inShort(changes)).toEqual([
      `rel.Company ${company.id} create 0`,
      `rel.Address ${address.id} create 0`,
      `rel.Person ${person.id} create 0`,
    ])
    expect(changes.map((made) => made.changes)).toMatchObject([
      { addresses: { before: null, after: [{ id: address.id }] } },
      { company: { before: null, after: { id: company.id } } },
      { company: { before: null, after: { id: company.id } } },
    ])
    expect(await read('rel.Company', company.id)).toMatchObject({
      version: 0,
      name: 'Made',
      addresses: [{ id: address.id, $version: 0, city: 'Bonn' }],
    })
  })

  test('a nested create sets defaults, computed fields and createdBy', async () => {
    const task = await make('rel.Task', {
      title: 'First',
      next: { title: 'Second', id: null, version: null },
    })
    expect(await read('rel.Task', referenceOf(task, 'next').id)).toMatchObject({
      version: 0,
      title: 'Second',
      state: 'open',
      next: null,
      seen: { title: 'Second', state: 'open' },
      createdBy: { id: 1 },
      updatedBy: null,
    })
  })

  test('computed fields get a reference as its id, and no lists', async () => {
    const company = await make('rel.Company', { name: 'Seen' })
    const task = await make('rel.Task', {
      title: 'T',
      company: { id: company.id },
      helpers: [{ name: 'H' }],
      next: { title: 'U' },
    })
    const next = referenceOf(task, 'next').id
    const seen = { title: 'T', state: 'open', company: { id: company.id }, next: { id: next } }
    expect(task['seen']).toEqual(seen)
    const changed = await change('rel.Task', task.id, { version: 0, state: 'done' })
    expect(changed['seen']).toEqual({ ...seen, state: 'done' })
    const cleared = await change('rel.Task', task.id, { version: 1, company: { name: 'Other' }, next: null })
    const other = referenceOf(cleared, 'company').id
    expect(cleared['seen']).toEqual({ title: 'T', state: 'done', company: { id: other }, next: null })
  })

  test('a related record sent with its version is updated, and an outdated version of it is a conflict', async () => {
    const company = await make('rel.Company', { name: 'Old' })
    const person = await make('rel.Person', { company: { id: company.id } })
    const changed = await change('rel.Person', person.id, {
      version: 0,
      company: { id: company.id, version: 0, name: 'New' },
    })
    expect(changed).toMatchObject({ version: 1, company: { id: company.id, $version: 1, name: 'New' } })
    expect(await read('rel.Company', company.id)).toMatchObject({ updatedBy: { id: 1 } })
    const stale = { version: 1, name: 'X', company: { id: company.id, version: 0, name: 'Z' } }
    const error = await expectRolledBack(() => change('rel.Person', person.id, stale))
    expect(error).toMatchObject({
      kind: 'conflict',
      details: {
        data: {
          ...{ entityName: 'rel.Company', entityId: company.id, expected: 0, current: 1 },
          fields: { name: { base: 'Old', ours: 'Z', theirs: 'New', verdict: 'clash' } },
        },
      },
    })
  })

  test('a related record sent unchanged keeps its version', async () => {
    const company = await make('rel.Company', { name: 'Same', addresses: [{ city: 'A' }] })
    const person = await make('rel.Person', { company: { id: company.id } })
    await change('rel.Person', person.id, {
      version: 0,
      company: { id: company.id, version: 0, name: 'Same', addresses: listOf(company, 'addresses') },
    })
    expect(await read('rel.Company', company.id)).toEqual(company)
  })

  test('a null clears a reference, and an absent key keeps it', async () => {
    const company = await make('rel.Company', { name: 'Left' })
    const person = await make('rel.Person', { company: { id: company.id }, boss: { name: 'B' } })
    const named = await change('rel.Person', person.id, { version: 0, name: 'N' })
    expect(named).toMatchObject({ company: { id: company.id }, boss: { name: 'B' } })
    const changes = await changesOf(() => change('rel.Person', person.id, { version: 1, company: null }))
    expect(changes.map((change) => change.changes)).toEqual([
      { company: { before: { id: company.id }, after: null } },
    ])
    expect(await read('rel.Person', person.id)).toMatchObject({ company: null, boss: { name: 'B' } })
  })

  test('a record may refer to itself', async () => {
    const company = await make('rel.Company', { name: 'Own parent' })
    const changed = await change('rel.Company', company.id, { version: 0, parent: { id: company.id } })
    expect(changed['parent']).toEqual({ id: company.id, $version: 1, name: 'Own parent' })
  })

  test('a record may refer to a user, which stays unchanged', async () => {
    const person = await make('rel.Person', { keeper: { id: 1 } })
    expect(person['keeper']).toEqual({ id: 1, $version: 0, name: 'Ada' })
    const again = await change('rel.Person', person.id, person)
    expect(again).toMatchObject({ version: 1, keeper: { id: 1, $version: 0, name: 'Ada' } })
  })

  test('a nested create repeated under its idempotency key creates the related records once', async () => {
    const data = {
      name: 'Once',
      company: { name: 'Once', addresses: [{ city: 'Once', doors: [{ pin: '1' }] }] },
    }
    const options = { idempotencyKey: `once-${engine}-${transport}` }
    const first = await records().create('rel.Person', data, options)
    const changes = await changesOf(async () => {
      const second = await records().create('rel.Person', data, options)
      expect(second).toEqual({ data: first.data, replayed: true })
    })
    expect(changes).toEqual([])
    expect((await records().find('rel.Company', { filter: `name = 'Once'` })).total).toBe(1)
    const other = structuredClone(data)
    other.company.addresses = [{ city: 'Once', doors: [{ pin: '2' }] }]
    expect(await catchError(records().create('rel.Person', other, options))).toMatchObject({
      kind: 'key-reused',
    })
  })

  test('a secret in a nested record is in no answer, no Change and no conflict', async () => {
    const door = (pin: string) => ({ code: null, pin })
    const company = await make('rel.Company', {
      name: 'Secret',
      addresses: [{ city: 'A', doors: [door('made-secret')] }],
    })
    const [address = { id: 0 }] = listOf(company, 'addresses')
    const [kept = { id: 0 }] = listOf(await read('rel.Address', address.id), 'doors')
    const told: unknown[] = [company]
    const update = (version: number, id: number, pin: string) => ({
      version,
      addresses: [{ id: address.id, version: version, doors: [{ id, version, pin }, door('other-secret')] }],
    })
    told.push(
      await changesOf(async () => {
        told.push(await change('rel.Company', company.id, update(0, kept.id, 'changed-secret')))
      }),
    )
    expect(await read('rel.Door', kept.id)).toMatchObject({ version: 1 })
    const stale = [
      () => change('rel.Door', kept.id, { version: 0, pin: 'stale-secret' }),
      () => change('rel.Address', address.id, { version: 0, doors: [door('stale-secret')] }),
      () =>
        change('rel.Company', company.id, {
          version: 9,
          addresses: [{ city: 'B', doors: [door('stale-secret')] }],
        }),
    ]
    for (const attempt of stale) {
      const error = await expectRolledBack(attempt)
      expect(error.kind).toBe('conflict')
      told.push(error.message, error.details)
    }
    const log = await service().app.db.reader.all('select changes from verso_log')
    expect(JSON.stringify([told, log])).not.toMatch(/-secret/)
    const rows = await service().app.db.reader.all('select pin from "rel.Door" where id = ?', [kept.id])
    expect(rows).toEqual([{ pin: 'changed-secret' }])
  })

  test('a record that refers to itself is shown with its new version', async () => {
    const { id } = await make('rel.Person', { name: 'Old' })
    await change('rel.Person', id, { version: 0, boss: { id } })
    const renamed = await change('rel.Person', id, { version: 1, name: 'New' })
    expect(renamed).toMatchObject({ version: 2, boss: { id, $version: 2, name: 'New' } })
    expect(renamed).toEqual(await read('rel.Person', id))
  })

  test('the answer to a write with relations equals a read', async () => {
    const company = await make('rel.Company', { name: 'C', addresses: [{ city: 'A' }] })
    const address = await make('rel.Address', { city: 'B', company: { id: company.id } })
    expect(address).toEqual(await read('rel.Address', address.id))
    const changed = await change('rel.Address', address.id, { version: 0, street: 'S' })
    expect(changed).toEqual(await read('rel.Address', address.id))
    const others = [
      ['rel.Badge', {}],
      ['rel.Circle', { name: 'Plain' }],
      ['rel.Company', { name: 'Plain' }],
      ['rel.Address', { city: 'Plain' }],
      ['rel.Door', { address: { id: address.id } }],
    ] as const
    for (const [model, data] of others) {
      const made = await make(model, data)
      expect(made).toEqual(await read(model, made.id))
    }
  })
})
