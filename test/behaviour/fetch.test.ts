import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FieldSelection } from '../../src/model/query/selection.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'
import { createPeople, type People } from './people.js'

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

  const versionOf = async (model: string, id: number) => (await records.read(model, id)).version
  const make = async (model: string, data: object): Promise<WireRecord> =>
    (await records.create(model, data)).data

  test('a related record fetched with $version and version can be changed and sent back', async () => {
    const company = await make('rel.Company', { name: 'Before', addresses: [{ city: 'Before' }] })
    const person = await make('rel.Person', { name: 'P', company: { id: company.id } })
    const fetched = await records.fetch('rel.Person', person.id, { related: { company: ['name'] } })
    expect(fetched['company']).toEqual({ id: company.id, $version: 0, version: 0, name: 'Before' })
    const edited = { ...(fetched['company'] as object), name: 'After' }
    await records.update('rel.Person', person.id, { version: 0, company: edited })
    const listed = await records.fetch('rel.Company', company.id, { related: { addresses: ['city'] } })
    const [address] = listed['addresses'] as readonly object[]
    const addresses = [{ ...address, city: 'After' }]
    await records.update('rel.Company', company.id, { version: 1, addresses })
    expect(await records.read('rel.Company', company.id)).toMatchObject({
      ...{ name: 'After', addresses: [{ city: 'After', $version: 1 }] },
    })
  })

  describe('a fetch without field names', () => {
    test('a fetch without fields and related equals a read', async () => {
      const read = await records.read('rel.Person', people.ada)
      expect(await records.fetch('rel.Person', people.ada)).toEqual(read)
      expect(await records.fetch('rel.Person', people.ada, {})).toEqual(read)
      expect(await records.fetch('rel.Person', people.ada, { fields: null, related: null })).toEqual(read)
    })

    test('a fetch with an empty list of fields returns id and version only', async () => {
      expect(await records.fetch('rel.Person', people.ada, { fields: [] })).toEqual({
        id: people.ada,
        version: 0,
      })
    })

    test('a fetch with only related adds the related fields to the record as read', async () => {
      const read = await records.read('rel.Person', people.bob)
      const fetched = await records.fetch('rel.Person', people.bob, { related: { boss: ['rate'] } })
      const boss = { id: people.emile, $version: 0, version: 0, name: 'Émile', rate: '9.00' }
      expect(fetched).toEqual({ ...read, boss })
    })
  })

  describe('fields of a fetch', () => {
    test('a fetch returns the named fields besides id and version, relations in compact form', async () => {
      const { ada, acme, badge } = people
      const company = { id: acme, $version: await versionOf('rel.Company', acme), name: 'Acme' }
      expect(
        await records.fetch('rel.Person', ada, {
          fields: ['rate', 'company', 'boss', 'badge', 'id', 'version'],
        }),
      ).toEqual({
        ...{ id: ada, version: 0, rate: '12.50', company, boss: null },
        badge: { id: badge, $version: 0, number: 'B-0007' },
      })
    })

    test('a fetch nests dotted fields under their first name', async () => {
      const { bob, zenith, acme, emile, ada } = people
      const fields = [
        'company.parent.founded',
        'company.code',
        'boss.boss',
        'boss.boss.badge.number',
        'badge.number',
      ]
      expect(await records.fetch('rel.Person', bob, { fields })).toEqual({
        ...{ id: bob, version: 0, badge: null },
        company: {
          ...{ id: zenith, $version: await versionOf('rel.Company', zenith), name: 'Zenith', code: 'Z' },
          parent: {
            ...{ id: acme, $version: await versionOf('rel.Company', acme) },
            ...{ name: 'Acme', founded: '2001-05-06' },
          },
        },
        boss: {
          ...{ id: emile, $version: 0, name: 'Émile' },
          boss: {
            ...{ id: ada, $version: 0, name: 'Ada' },
            badge: { id: people.badge, $version: 0, number: 'B-0007' },
          },
        },
      })
    })

    test('a dotted field over a list adds the field to each member, and may lead to a list in it', async () => {
      const { acme, oslo, rome } = people
      const { addresses } = await records.fetch('rel.Company', acme, {
        fields: ['addresses.street', 'addresses.doors.code', 'addresses.company.code'],
      })
      const company = { id: acme, $version: await versionOf('rel.Company', acme), name: 'Acme', code: 'A' }
      const [first, second] = [expect.any(Number), expect.any(Number)]
      expect(addresses).toEqual([
        {
          ...{ id: oslo, $version: 0, city: 'Oslo', street: 'Main', company },
          doors: [
            { id: first, $version: 0, code: 'D1' },
            { id: second, $version: 0, code: 'D2' },
          ],
        },
        { id: rome, $version: 0, city: 'Rome', street: null, company, doors: [] },
      ])
    })

    test('a fetch over two nested lists succeeds, and over three is rejected as bad-request', async () => {
      const shown = await records.fetch('rel.Circle', people.blue, {
        fields: ['members.company.addresses.city'],
      })
      expect(shown).toMatchObject({
        members: [{ id: people.ada, company: { addresses: [{ city: 'Oslo' }, { city: 'Rome' }] } }],
      })
      const error = await catchError(
        records.fetch('rel.Circle', people.blue, { fields: ['members.company.addresses.doors'] }),
      )
      expect([error.kind, error.message]).toEqual([
        'bad-request',
        'rel.Address.doors is a list inside two other lists: search rel.Door instead',
      ])
    })
  })

  describe('related of a fetch', () => {
    test('related returns the version and the named fields of each related record', async () => {
      const { ada, acme, red, blue, badge } = people
      const related = { company: ['code', 'founded'], boss: ['name'], circles: ['name'], badge: [] }
      expect(await records.fetch('rel.Person', ada, { fields: [], related })).toEqual({
        ...{ id: ada, version: 0, boss: null, badge: { id: badge, version: 0 } },
        company: {
          id: acme,
          version: await versionOf('rel.Company', acme),
          code: 'A',
          founded: '2001-05-06',
        },
        circles: [
          { id: red, version: 0, name: 'Red' },
          { id: blue, version: 0, name: 'Blue' },
        ],
      })
    })

    test('related is merged with the compact form if fields name the same relation', async () => {
      const { acme, oslo } = people
      const wanted = { fields: ['addresses', 'seat'], related: { addresses: ['street', 'doors'] } }
      const { addresses, seat } = await records.fetch('rel.Company', acme, wanted)
      expect(seat).toBeNull()
      expect(addresses).toMatchObject([
        {
          ...{ id: oslo, $version: 0, version: 0, city: 'Oslo', street: 'Main' },
          doors: [{ $version: 0, code: 'D1' }, { code: 'D2' }],
        },
        { city: 'Rome', doors: [] },
      ])
    })

    test('related accepts dotted paths that start at the related record', async () => {
      const related = { boss: ['company.parent.name', 'circles.name'] }
      expect(await records.fetch('rel.Person', people.emile, { fields: [], related })).toMatchObject({
        boss: {
          id: people.ada,
          version: 0,
          company: { name: 'Acme', parent: null },
          circles: [{ name: 'Red' }, {}],
        },
      })
    })

    test('a fetched related record sent back is updated, and an outdated version of it is a conflict', async () => {
      const company = await make('rel.Company', { name: 'Old', addresses: [{ city: 'A' }, { city: 'B' }] })
      const person = await make('rel.Person', { name: 'P', company: { id: company.id } })
      const wanted = { fields: ['name'], related: { company: ['name', 'code'] } }
      const fetched = await records.fetch('rel.Person', person.id, wanted)
      const shown = fetched['company'] as WireRecord
      const changed = { ...fetched, company: { ...shown, name: 'New' } }
      await records.update('rel.Person', person.id, changed)
      expect(await records.read('rel.Company', company.id)).toMatchObject({
        version: shown.version + 1,
        name: 'New',
      })
      const stale = await catchError(
        records.update('rel.Person', person.id, {
          ...changed,
          version: 1,
          company: { ...shown, name: 'Newer' },
        }),
      )
      expect([stale.kind, stale.details.data]).toMatchObject(['conflict', { entityName: 'rel.Company' }])
    })

    test('a fetched list can be sent back with members kept, changed and added', async () => {
      const company = await make('rel.Company', { name: 'L', addresses: [{ city: 'A' }, { city: 'B' }] })
      const wanted = { fields: [], related: { addresses: ['city'] } }
      const fetched = await records.fetch('rel.Company', company.id, wanted)
      const [a, b] = fetched['addresses'] as readonly WireRecord[]
      const addresses = [a, { ...b, city: 'B2' }, { city: 'C' }]
      await records.update('rel.Company', company.id, { ...fetched, addresses })
      const now = await records.fetch('rel.Company', company.id, wanted)
      expect(now).toMatchObject({
        version: company.version + 1,
        addresses: [a, { id: b?.id, version: 1, city: 'B2' }, { version: 0, city: 'C' }],
      })
    })
  })

  test('a fetch returns an archived record like any other', async () => {
    const note = await make('test.Note', { title: 'old', archived: true })
    expect(await records.fetch('test.Note', note.id)).toEqual(note)
    expect(await records.fetch('test.Note', note.id, { fields: ['archived'] })).toEqual({
      ...{ id: note.id, version: 0, archived: true },
    })
  })

  describe('rejected fetches', () => {
    test.for([{}, { fields: ['name'] }, { related: { company: ['name'] } }])(
      'a fetch of a deleted or missing record is not-found, and of a missing model unknown-model: %j',
      async (wanted) => {
        const gone = await make('rel.Person', {})
        await records.remove('rel.Person', gone.id)
        for (const id of [gone.id, 999_999])
          expect((await catchError(records.fetch('rel.Person', id, wanted))).kind).toBe('not-found')
        expect((await catchError(records.fetch('rel.Persn', people.ada, wanted))).kind).toBe('unknown-model')
      },
    )

    const faults: readonly (readonly [wanted: unknown, message: RegExp])[] = [
      [{ fields: 'name' }, /^fields must be a list of field names/],
      [{ fields: [['name']] }, /^fields must be a list of field names/],
      [{ fields: ['nmae'] }, /rel\.Person has no field "nmae" \(did you mean "name"\?\)/],
      [{ fields: ['company.nmae'] }, /rel\.Company has no field "nmae"/],
      [{ fields: ['name.first'] }, /rel\.Person\.name is not a relation/],
      [{ fields: ['id.x'] }, /rel\.Person\.id is not a relation/],
      [{ fields: Array.from({ length: 501 }, () => 'name') }, /at most 500 fields/],
      [{ fields: [`${'boss.'.repeat(9)}name`] }, /follows more than 8 relations/],
      [{ related: ['company'] }, /^related must be an object/],
      [{ related: 'company' }, /^related must be an object/],
      [{ related: { company: 'name' } }, /^related\.company must be a list of field names/],
      [{ related: { name: ['x'] } }, /rel\.Person\.name is not a relation/],
      [{ related: { compny: ['name'] } }, /rel\.Person has no field "compny" \(did you mean "company"\?\)/],
      [{ related: { 'company.parent': ['name'] } }, /"company.parent" must be a field of the record itself/],
      [{ related: { company: ['nmae'] } }, /rel\.Company has no field "nmae"/],
      [{ related: { keeper: ['password'] } }, /verso\.auth\.User has no field "password"/],
      [{ fields: ['company.addresses.doors.pin'] }, /rel\.Door has no field "pin"/],
    ]
    test.for(faults)('a fetch with %j is rejected as bad-request', async ([wanted, message]) => {
      const error = await catchError(records.fetch('rel.Person', people.ada, wanted as FieldSelection))
      expect([error.kind, error.message]).toEqual(['bad-request', expect.stringMatching(message)])
    })
  })
})
