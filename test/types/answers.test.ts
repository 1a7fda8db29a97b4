// The types of answers are those of a service: each expected answer is a value of the type, without a key more or less, and equals what the
// service returns.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, ConflictError, type Client, type Conflict } from '../../src/client/index.js'
import * as models from '../models.js'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../targets.js'

type Models = typeof models

onEngineOfTier((engine) => {
  let service: Service
  let verso: Client<Models>
  let company: number
  let person: number
  beforeAll(async () => {
    service = await startService(engine)
    verso = connect<Models>(service.url, { username: USERNAME, password: PASSWORD })
    const created = await verso.batch([
      {
        op: 'create',
        model: 'rel.Company',
        ref: 'company',
        data: { name: 'Nordlicht', code: 'NORD', addresses: [{ city: 'Kiel', doors: [{ code: 'D1' }] }] },
      },
      {
        op: 'create',
        model: 'rel.Person',
        data: { name: 'Ada', rate: 12.5, company: { $ref: 'company' }, circles: [{ name: 'Press' }] },
      },
    ])
    company = created[0].id
    person = created[1].id
    const { addresses, version } = created[0]
    const seat = { id: addresses[0]?.id ?? 0 }
    await verso.model('rel.Company').update(company, { version, seat })
  })
  afterAll(() => service.close())

  const ada = { id: expect.any(Number) as number, $version: 0, name: 'Ada' }
  const user = { id: expect.any(Number) as number, $version: expect.any(Number) as number, name: 'Ada' }
  const on = expect.any(String) as string

  test('a read', async () => {
    const found = await verso.model('rel.Person').read(person)
    const expected: typeof found = {
      id: person,
      version: 0,
      name: 'Ada',
      born: null,
      rate: '12.50',
      isActive: null,
      company: { id: company, $version: 1, name: 'Nordlicht' },
      boss: null,
      circles: [{ id: 1, $version: 0, name: 'Press' }],
      keeper: null,
      createdOn: on,
      createdBy: user,
      updatedOn: null,
      updatedBy: null,
    }
    expect(found).toEqual(expected)
  })

  test('a find with the list fields', async () => {
    const { data, total } = await verso.model('rel.Company').find()
    const expected: (typeof data)[number] = { id: company, version: 1, code: 'NORD', name: 'Nordlicht' }
    expect([total, data]).toEqual([1, [expected]])
  })

  test('a find with selected fields and paths, a filter object and sort keys', async () => {
    const { data } = await verso.model('rel.Person').find({
      fields: [
        'rate',
        'company',
        'company.name',
        'company.seat.city',
        'boss.company.code',
        'createdBy.name',
        'badge',
      ],
      filter: { 'company.addresses.city': 'Kiel', or: [{ name: { like: 'ad%' } }, { born: null }] },
      sortBy: ['-company.name', 'rate'],
    })
    const expected: (typeof data)[number] = {
      id: person,
      version: 0,
      rate: '12.50',
      company: { id: company, $version: 1, name: 'Nordlicht' },
      'company.name': 'Nordlicht',
      'company.seat.city': 'Kiel',
      'boss.company.code': null,
      'createdBy.name': 'Ada',
      badge: null,
    }
    expect(data).toEqual([expected])
  })

  test('a find with an inverse relation, and one with no field', async () => {
    const { data } = await verso.model('rel.Company').find({ fields: ['people'] })
    const expected: (typeof data)[number] = { id: company, version: 1, people: [{ ...ada, id: person }] }
    expect(data).toEqual([expected])
    const bare = await verso.model('rel.Company').find({ fields: [] })
    const key: (typeof bare)['data'][number] = { id: company, version: 1 }
    expect(bare.data).toEqual([key])
  })

  test('a search', async () => {
    const { data } = await verso
      .model('rel.Circle')
      .search({ fields: ['members'], filter: { name: ['Press'] } })
    const expected: (typeof data)[number] = { id: 1, version: 0, members: [{ ...ada, id: person }] }
    expect(data).toEqual([expected])
  })

  test('a fetch of related records', async () => {
    const found = await verso.model('rel.Company').fetch(company, {
      fields: ['code', 'people.rate', 'seat'],
      related: { addresses: ['street', 'doors.code'] },
    })
    const expected: typeof found = {
      id: company,
      version: 1,
      code: 'NORD',
      people: [{ ...ada, id: person, rate: '12.50' }],
      seat: { id: 1, $version: 0, city: 'Kiel' },
      addresses: [{ id: 1, version: 0, street: null, doors: [{ id: 1, $version: 0, code: 'D1' }] }],
    }
    expect(found).toEqual(expected)
  })

  test('a fetch of all fields', async () => {
    const found = await verso.model('rel.Door').fetch(1)
    const expected: typeof found = {
      id: 1,
      version: 0,
      code: 'D1',
      address: { id: 1, $version: 0, city: 'Kiel' },
      createdOn: on,
      createdBy: user,
      updatedOn: null,
      updatedBy: null,
    }
    expect(found).toEqual(expected)
  })

  test('a batch', async () => {
    const circles = verso.model('rel.Circle')
    const { id, version } = await circles.create({ name: 'Board' })
    const results = await verso.batch([
      { op: 'assert', model: 'rel.Company', id: company, version: 1 },
      { op: 'update', model: 'rel.Circle', id, version, data: { name: 'The board' } },
      { op: 'create', model: 'rel.Badge', ref: 'badge', data: {} },
      { op: 'delete', model: 'rel.Badge', id: { $ref: 'badge' } },
    ])
    const system = { createdOn: on, createdBy: user, updatedOn: null, updatedBy: null }
    const expected: typeof results = [
      { id: company, version: 1 },
      { ...system, id, version: 1, name: 'The board', updatedOn: on, updatedBy: user },
      { ...system, id: 1, version: 0, number: 'B-0007', holder: null },
      1,
    ]
    expect(results).toEqual(expected)
  })

  test('both sides of a conflict', async () => {
    const circles = verso.model('rel.Circle')
    const { id, ...before } = await circles.create({ name: 'Choir' })
    await circles.update(id, { version: 0, name: 'Theirs' })
    const seen: Conflict<Models, 'rel.Circle'>[] = []
    const merged = await circles.update(
      id,
      { version: 0, name: 'Ours' },
      {
        onConflict: (conflict) => {
          seen.push(conflict)
          return { name: `${conflict.ours.name ?? ''} and ${conflict.theirs.name}` }
        },
      },
    )
    const expected: Conflict<Models, 'rel.Circle'> = {
      base: { id, ...before },
      ours: { name: 'Ours' },
      theirs: { id, ...before, version: 1, name: 'Theirs', updatedOn: on, updatedBy: user },
      fields: { name: { base: 'Choir', ours: 'Ours', theirs: 'Theirs', verdict: 'clash' } },
    }
    expect(seen).toMatchObject([{ ours: expected.ours, theirs: expected.theirs, fields: expected.fields }])
    expect(seen[0]?.base?.name).toBe(expected.base?.name)
    expect(merged.name).toBe('Ours and Theirs')
    await expect(circles.update(id, { version: 0, name: 'Again' })).rejects.toBeInstanceOf(ConflictError)
  })
})
