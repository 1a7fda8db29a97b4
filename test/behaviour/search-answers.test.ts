// Fields and order of the records in a search answer.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Records } from '../../src/wire.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'
import { createPeople, idsOf, type People } from './people.js'

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  let people: People

  beforeAll(async () => {
    service = await startService(engine)
    records = await enter(service, transport)
    people = await createPeople(records)
  })
  afterAll(() => service.close())

  const messageOf = async (call: Promise<unknown>) => {
    const { kind, message } = await catchError(call)
    expect(kind).toBe('bad-request')
    return message
  }

  describe('fields of a search', () => {
    const show = async (fields: unknown, id = people.ada, model = 'rel.Person') => {
      const data = { criteria: [{ fieldName: 'id', operator: '=', value: id }] }
      return (await records.search(model, { fields, data })).data
    }

    test('a search without fields returns the list fields, as a find does', async () => {
      const { data } = await records.find('rel.Person')
      expect(await show(undefined)).toEqual(data.filter(({ id }) => id === people.ada))
      expect(await show(null)).toEqual(await show(undefined))
    })

    test('a search returns the named fields besides id and version, relations in compact form', async () => {
      const { ada, acme, red, blue, badge } = people
      const { version } = await records.read('rel.Company', acme)
      expect(await show(['rate', 'company', 'boss', 'circles', 'badge', 'name', 'id', 'rate'])).toEqual([
        {
          ...{ id: ada, version: 0, rate: '12.50', name: 'Ada', boss: null },
          company: { id: acme, $version: version, name: 'Acme' },
          circles: [
            { id: red, $version: 0, name: 'Red' },
            { id: blue, $version: 0, name: 'Blue' },
          ],
          badge: { id: badge, $version: 0, number: 'B-0007' },
        },
      ])
    })

    const RELATIONS: Readonly<Record<string, readonly string[]>> = {
      'rel.Person': ['company', 'boss', 'circles', 'badge', 'keeper', 'createdBy', 'updatedBy'],
      'rel.Company': ['addresses', 'people', 'seat', 'parent'],
      'rel.Circle': ['members'],
      'rel.Badge': ['holder'],
    }
    test('a find without a condition returns each relation it names, as a search does', async () => {
      for (const [model, relations] of Object.entries(RELATIONS)) {
        for (const fields of [...relations.map((name) => [name]), relations]) {
          const found = await records.find(model, { fields: fields.join() })
          const { data, total } = await records.search(model, { fields })
          expect(found, `${model} ${fields.join()}`).toMatchObject({ data, total })
          expect(data).not.toEqual([])
        }
      }
    })

    test('a search returns inverse relations if they are named', async () => {
      const { acme, ada, emile, oslo, rome } = people
      const [company] = await show(['people', 'addresses'], acme, 'rel.Company')
      expect(company).toMatchObject({
        people: [
          { id: ada, name: 'Ada' },
          { id: emile, name: 'Émile' },
        ],
        addresses: [
          { id: oslo, city: 'Oslo' },
          { id: rome, city: 'Rome' },
        ],
      })
      const [address] = await show(['company.people'], oslo, 'rel.Address')
      expect(address).toMatchObject({ 'company.people': [{ id: ada }, { id: emile }] })
    })

    test('a search returns dotted fields under flat keys, null if a step has no record', async () => {
      const { ada, emile, bob, acme } = people
      const fields = [
        'boss.boss.name',
        'boss.company',
        'company.parent.founded',
        'company.id',
        'boss.badge.number',
      ]
      const { data } = await records.search('rel.Person', { fields, sortBy: ['id'], limit: 3 })
      const { version } = await records.read('rel.Company', acme)
      const company = { id: acme, $version: version, name: 'Acme' }
      expect(data).toEqual([
        {
          ...{ id: ada, version: 0, 'boss.boss.name': null, 'boss.company': null, 'boss.badge.number': null },
          ...{ 'company.parent.founded': null, 'company.id': acme },
        },
        {
          ...{ id: emile, version: 0, 'boss.boss.name': null, 'boss.company': company },
          ...{ 'company.parent.founded': null, 'company.id': acme, 'boss.badge.number': 'B-0007' },
        },
        {
          ...{ id: bob, version: 0, 'boss.boss.name': 'Ada', 'boss.company': company },
          ...{
            'company.parent.founded': '2001-05-06',
            'company.id': people.zenith,
            'boss.badge.number': null,
          },
        },
      ])
    })

    test('a search with an empty list of fields returns id and version only', async () => {
      expect(await show([])).toEqual([{ id: people.ada, version: 0 }])
      const { data } = await records.find('rel.Person', { fields: '', limit: 1 })
      expect(data).toEqual([{ id: people.ada, version: 0 }])
    })

    test('a search returns values of every field type as a read does', async () => {
      const everything = {
        ...{
          label: 'Zürich',
          note: 'a\nb',
          whole: -7,
          big: 2 ** 53 - 1,
          amount: '1.5000000000',
          price: '0.10',
        },
        ...{ active: false, day: '2024-02-29', at: '13:45:00', moment: '2024-02-29T13:45:00.120Z' },
        ...{ token: '8d3f5c9e-0c1b-4b60-9d53-0a4a6a3c1f10', state: 'paid', extra: { b: [1, null], a: 'x' } },
      }
      const { data } = await records.create('test.Everything', everything)
      const [shown] = await show(Object.keys(everything), data.id, 'test.Everything')
      expect(shown).toEqual({ id: data.id, version: 0, ...everything })
      expect(JSON.stringify(shown?.['extra'])).toBe('{"b":[1,null],"a":"x"}')
    })

    const faults: readonly (readonly [model: string, field: unknown, message: RegExp])[] = [
      ['rel.Person', ['nmae'], /rel\.Person has no field "nmae" \(did you mean "name"\?\)/],
      ['rel.Person', ['company.nmae'], /rel\.Company has no field "nmae"/],
      ['rel.Person', ['name.length'], /rel\.Person\.name is not a relation/],
      ['rel.Person', ['circles.name'], /"circles.name" follows a list/],
      ['rel.Door', ['pin'], /rel\.Door has no field "pin"/],
      ['crm.Contact', ['password'], /crm\.Contact has no field "password"/],
      ['rel.Person', ['name', 5], /fields must be a list of field names/],
      ['rel.Person', { name: true }, /fields must be a list of field names/],
      ['rel.Person', [''], /has no field ""/],
      ['rel.Person', ['constructor'], /has no field "constructor"/],
    ]
    test.for(faults)(
      'a search of %s with the fields %j is rejected as bad-request',
      async ([model, fields, message]) => {
        expect(await messageOf(records.search(model, { fields }))).toMatch(message)
      },
    )
  })

  describe('sortBy of a search', () => {
    const cases: readonly (readonly [
      claim: string,
      sortBy: readonly string[],
      ids: readonly (keyof People)[],
    ])[] = [
      ['texts by code point, nulls last', ['name'], ['ada', 'bob', 'zoe', 'emile', 'nobody']],
      ['texts descending, nulls last', ['-name'], ['emile', 'zoe', 'bob', 'ada', 'nobody']],
      ['decimals as numbers, then by id', ['rate'], ['emile', 'ada', 'zoe', 'bob', 'nobody']],
      ['references by name, then by id', ['-company'], ['bob', 'ada', 'emile', 'zoe', 'nobody']],
      ['by a path', ['company.founded', '-name'], ['emile', 'ada', 'zoe', 'bob', 'nobody']],
      ['by an inverse relation', ['badge.number', '-id'], ['ada', 'nobody', 'zoe', 'bob', 'emile']],
      ['booleans with false first', ['isActive'], ['emile', 'ada', 'bob', 'zoe', 'nobody']],
      ['ascending with a plus sign', ['+born'], ['ada', 'emile', 'bob', 'zoe', 'nobody']],
      ['by id, descending', ['-id'], ['nobody', 'zoe', 'bob', 'emile', 'ada']],
      ['by createdBy', ['createdBy', '-rate'], ['zoe', 'ada', 'emile', 'bob', 'nobody']],
      ['by id without keys', [], ['ada', 'emile', 'bob', 'zoe', 'nobody']],
    ]
    test.for(cases)('a search sorts %s: %j', async ([, sortBy, expected]) => {
      const page = await records.search('rel.Person', { sortBy })
      expect(idsOf(page)).toEqual(expected.map((name) => people[name]))
    })

    const faults: readonly (readonly [model: string, sortBy: unknown, message: RegExp])[] = [
      ['rel.Person', ['circles'], /sortBy: "circles" is a list/],
      ['rel.Person', ['company.addresses.city'], /"company.addresses.city" is a list/],
      ['test.Everything', ['extra'], /"extra" is JSON/],
      ['rel.Person', ['-nmae'], /has no field "nmae" \(did you mean "name"\?\)/],
      ['rel.Door', ['pin'], /has no field "pin"/],
      ['crm.Contact', ['-password'], /has no field "password"/],
      ['rel.Person', ['--name'], /has no field "-name"/],
      ['rel.Person', 5, /sortBy must be a list/],
    ]
    test.for(faults)(
      'a search of %s sorted by %j is rejected as bad-request',
      async ([model, sortBy, message]) => {
        expect(await messageOf(records.search(model, { sortBy }))).toMatch(message)
      },
    )
  })

  describe('fields of users in a search', () => {
    test('a search can return, filter and sort by the name of a user', async () => {
      const request = {
        ...{ fields: ['createdBy.name', 'createdBy', 'createdBy.id'], sortBy: ['createdBy.name'], limit: 1 },
        data: { _domain: "createdBy.name like 'ad%' and createdBy = 'Ada'" },
      }
      const page = await records.search('rel.Person', request)
      expect(page.total).toBe(5)
      expect(page.data).toEqual([
        {
          ...{ id: people.ada, version: 0, 'createdBy.name': 'Ada', 'createdBy.id': 1 },
          createdBy: { id: 1, $version: 0, name: 'Ada' },
        },
      ])
    })

    test.for(['password', 'admin', 'usernam', 'hash', 'nothing'])(
      'no search, find or fetch can name the user field %s',
      async (field) => {
        const path = `createdBy.${field}`
        const unknown = new RegExp(`verso\\.auth\\.User has no field "${field}"`)
        const criteria = [{ fieldName: path, operator: 'notNull' }]
        const calls = [
          records.search('rel.Person', { data: { criteria } }),
          records.search('rel.Person', { data: { _domain: `${path} = :p`, _domainContext: { p: 'x' } } }),
          records.search('rel.Person', { fields: [path] }),
          records.search('rel.Person', { sortBy: [path] }),
          records.find('rel.Person', { filter: `self.${path} is null` }),
          records.search('rel.Person', { data: { _domain: `keeper.${field} is null` } }),
          records.search('rel.Badge', { data: { _domain: `holder.keeper.${field} is null` } }),
          records.fetch('rel.Person', people.ada, { fields: [path] }),
          records.fetch('rel.Person', people.ada, { related: { keeper: [field] } }),
        ]
        for (const message of await Promise.all(calls.map(messageOf))) expect(message).toMatch(unknown)
      },
    )
  })
})
