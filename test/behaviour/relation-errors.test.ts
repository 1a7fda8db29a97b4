import { expect, test } from 'vitest'
import { onEveryTarget } from '../targets.js'
import { idsOf, listOf, useRelatedService } from './related-service.js'

const REFERRING =
  /must be null or an object: \{ "id": 1 \} refers to a record, and an object without an id creates one/

onEveryTarget((engine, transport) => {
  const { make, change, read, expectRolledBack } = useRelatedService(engine, transport)

  const faultsOf = async (model: string, data: object) => {
    const { kind, details } = await expectRolledBack(() => make(model, data))
    return { kind, errors: details.errors }
  }

  test('a reference with more fields than its id, but without a version, is rejected as invalid', async () => {
    const company = await make('rel.Company', { name: 'Old' })
    const sent = { id: company.id, name: 'New' }
    const message = `has values for rel.Company ${company.id} but no "version": send its "version" to change it, or only its id`
    expect(await faultsOf('rel.Person', { company: sent })).toEqual({
      kind: 'invalid',
      errors: { company: message },
    })
    expect(await faultsOf('rel.Person', { company: { ...sent, version: null } })).toEqual({
      kind: 'invalid',
      errors: { company: message },
    })
    const circle = await make('rel.Circle', { name: 'Old' })
    const list = await faultsOf('rel.Person', { circles: [{ id: circle.id, name: 'New' }] })
    expect(list.errors).toEqual({ 'circles[0]': expect.stringMatching(/send its "version" to change it/) })
  })

  test('a reference to a missing record is rejected with its path', async () => {
    const errorsOf = async (data: object) => (await faultsOf('rel.Person', data)).errors
    const nobody = { id: 987_654 }
    const none = 'refers to rel.Company 987654, which does not exist'
    expect(await errorsOf({ company: nobody, boss: nobody, keeper: nobody })).toEqual({
      company: none,
      boss: 'refers to rel.Person 987654, which does not exist',
      keeper: 'refers to verso.auth.User 987654, which does not exist',
    })
    expect(await errorsOf({ company: { name: 'A', parent: nobody } })).toEqual({ 'company.parent': none })
    expect(await errorsOf({ company: { ...nobody, version: 0, name: 'A' } })).toEqual({ company: none })
    expect(await errorsOf({ circles: [{ name: 'A' }, nobody] })).toEqual({
      'circles[1]': 'refers to rel.Circle 987654, which does not exist',
    })
    expect(await errorsOf({ company: { name: 'A', addresses: [{ city: 'B' }, nobody] } })).toEqual({
      'company.addresses[1]': 'refers to rel.Address 987654, which does not exist',
    })
    expect(await errorsOf({ circles: [{ ...nobody, version: 0, name: 'A' }] })).toEqual({
      'circles[0]': 'refers to rel.Circle 987654, which does not exist',
    })
  })

  test('an update with a reference to a missing record writes nothing', async () => {
    const person = await make('rel.Person', { company: { name: 'Stays' } })
    const sent = { version: 0, name: 'X', company: { id: 987_654 } }
    const error = await expectRolledBack(() => change('rel.Person', person.id, sent))
    expect(error.details.errors).toEqual({ company: 'refers to rel.Company 987654, which does not exist' })
  })

  test.each([[5], ['x'], [''], [true], [false], [[]], [[{ id: 1 }]]])(
    'a to-one relation sent as %j is rejected as invalid',
    async (sent) => {
      const { kind, errors } = await faultsOf('rel.Person', { company: sent, name: 'X' })
      expect(kind).toBe('invalid')
      expect(errors).toEqual({ company: expect.stringMatching(REFERRING) })
    },
  )

  test.each([
    [{ id: 0 }, /has an invalid id: it must be a whole number from 1/],
    [{ id: -1 }, /has an invalid id: it must be a whole number from 1/],
    [{ id: 1.5 }, /has an invalid id: it must be a whole number from 1/],
    [{ id: '1' }, /has an invalid id: it must be a whole number from 1/],
    [{ id: 2 ** 53 }, /has an invalid id: it must be a whole number from 1/],
    [{ id: 1, version: -1 }, /has an invalid version: it must be a whole number from 0/],
    [{ id: 1, version: '0' }, /has an invalid version: it must be a whole number from 0/],
    [{ version: 0, name: 'A' }, /has a version but no id/],
  ])('a related record sent as %j is rejected as invalid', async (sent, message) => {
    const { kind, errors } = await faultsOf('rel.Person', { company: sent })
    expect(kind).toBe('invalid')
    expect(errors).toEqual({ company: expect.stringMatching(message) })
  })

  test('a required reference can be neither omitted nor cleared', async () => {
    const required = { kind: 'invalid', errors: { address: 'is required' } }
    expect(await faultsOf('rel.Door', { code: 'D' })).toEqual(required)
    expect(await faultsOf('rel.Door', { code: 'D', address: null })).toEqual(required)
    const made = await make('rel.Door', { address: { city: 'A' } })
    const error = await expectRolledBack(() => change('rel.Door', made.id, { version: 0, address: null }))
    expect(error).toMatchObject({ kind: 'invalid', details: { errors: required.errors } })
    expect(await change('rel.Door', made.id, { version: 0, code: 'D' })).toMatchObject({
      address: { city: 'A' },
    })
  })

  test('all errors of nested records are reported at once, each with its path', async () => {
    const { kind, errors } = await faultsOf('rel.Person', {
      born: 'soon',
      company: {
        founded: 'long ago',
        nmae: 'A',
        seat: 5,
        addresses: [{ city: 'A' }, { street: 'B', doors: [{ code: 7 }, 'x'] }, { city: 5 }],
      },
      circles: [{}, null],
      boss: { company: { parent: { name: null } } },
    })
    expect(kind).toBe('invalid')
    expect(Object.entries(errors ?? {}).sort()).toEqual([
      ['born', expect.stringMatching(/must be a date/)],
      ['boss.company.name', 'is required'],
      ['boss.company.parent.name', 'is required'],
      ['circles[0].name', 'is required'],
      ['circles[1]', expect.stringMatching(/^must be an object/)],
      ['company.addresses[1].city', 'is required'],
      ['company.addresses[1].doors[0].code', 'must be text'],
      ['company.addresses[1].doors[1]', expect.stringMatching(/^must be an object/)],
      ['company.addresses[2].city', 'must be text'],
      ['company.founded', expect.stringMatching(/must be a date/)],
      ['company.name', 'is required'],
      ['company.nmae', 'is not a field of rel.Company (did you mean "name"?)'],
      ['company.seat', expect.stringMatching(REFERRING)],
    ])
  })

  test('an error in the last part of a request rolls back the first parts', async () => {
    await make('rel.Company', { code: 'TAKEN', name: 'A' })
    const circle = await make('rel.Circle', { name: 'C' })
    await change('rel.Circle', circle.id, { version: 0, name: 'C2' })
    const company = { name: 'First', addresses: [{ city: 'A', doors: [{ code: 'first' }] }] }
    const twice = [{ code: 'same' }, { code: 'same' }]
    const attempts: readonly (readonly [string, object])[] = [
      ['not-unique', { company, boss: { company: { code: 'TAKEN', name: 'B' } } }],
      ['not-unique', { company: { ...company, addresses: [{ city: 'A', doors: twice }] } }],
      ['conflict', { company, circles: [{ name: 'New' }, { id: circle.id, version: 0, name: 'C3' }] }],
      ['invalid', { company, circles: [{ name: 'New' }, { id: 987_654 }] }],
      ['invalid', { company, boss: { name: 'B', boss: { id: 987_654 } } }],
    ]
    for (const [kind, data] of attempts) {
      const error = await expectRolledBack(() => make('rel.Person', data))
      expect(error.kind).toBe(kind)
    }
  })

  test('records nested 8 levels deep are written, and 9 levels are rejected', async () => {
    const nested = (depth: number): object => (depth === 1 ? {} : { boss: nested(depth - 1) })
    await make('rel.Person', nested(8))
    const error = await expectRolledBack(() => make('rel.Person', nested(9)))
    expect(error).toMatchObject({ kind: 'bad-request', message: expect.stringMatching(/8 levels deep/) })
  })

  test('a write of more than 1,000 nested records is rejected as bad-request', async () => {
    const people = (count: number) => ({
      name: 'Many',
      addresses: Array.from({ length: count }, () => ({ city: 'A', doors: [{}] })),
    })
    const error = await expectRolledBack(() => make('rel.Company', people(500)))
    expect(error).toMatchObject({
      kind: 'bad-request',
      message: 'At most 1000 records can be written in one request; nothing was changed',
    })
    expect(listOf(await make('rel.Company', people(40)), 'addresses')).toHaveLength(40)
  })

  test('a record changed in two places of one request is rejected as invalid', async () => {
    const person = await make('rel.Person', { name: 'P', boss: { name: 'B' }, company: { name: 'C' } })
    const own = { id: person.id, version: 0 }
    const boss = { ...(person['boss'] as { id: number }), version: 0 }
    const again = (model: string, id: number) =>
      `changes ${model} ${id}, which this request already changes in another place`
    const attempts: readonly (readonly [object, object])[] = [
      [{ boss: { ...own, name: 'X' } }, { boss: again('rel.Person', person.id) }],
      [
        { boss: { ...boss, name: 'X', boss: { ...boss, name: 'Y' } } },
        { boss: again('rel.Person', boss.id) },
      ],
    ]
    for (const [data, errors] of attempts) {
      const error = await expectRolledBack(() => change('rel.Person', person.id, { version: 0, ...data }))
      expect(error).toMatchObject({ kind: 'invalid', details: { errors } })
    }
    const referring = { version: 0, boss: { id: person.id } }
    expect(await change('rel.Person', person.id, referring)).toMatchObject({ version: 1 })
  })

  test('a record changed through a reference cannot join a list in the same request', async () => {
    const company = await make('rel.Company', { name: 'Two ways' })
    const address = await make('rel.Address', { city: 'A' })
    const seat = { id: address.id, version: 0, city: 'B' }
    const data = { version: 0, seat, addresses: [{ id: address.id }] }
    const error = await expectRolledBack(() => change('rel.Company', company.id, data))
    expect(error.details.errors).toEqual({
      'addresses[0]': `changes rel.Address ${address.id}, which this request already changes in another place`,
    })
    const changed = await change('rel.Company', company.id, {
      version: 0,
      seat: { id: address.id },
      addresses: [seat],
    })
    expect(idsOf(changed, 'addresses')).toEqual([{ id: address.id }])
    expect(await read('rel.Address', address.id)).toMatchObject({ version: 1, city: 'B' })
  })

  test.each([
    ['rel.Company', { name: 'A', people: [] }, 'people', 'rel.Person.company'],
    ['rel.Company', { name: 'A', people: null }, 'people', 'rel.Person.company'],
    ['rel.Company', { name: 'A', people: [{ name: 'B' }] }, 'people', 'rel.Person.company'],
    ['rel.Circle', { name: 'A', members: [{ id: 1 }] }, 'members', 'rel.Person.circles'],
    ['rel.Person', { badge: { id: 1 } }, 'badge', 'rel.Badge.holder'],
    ['rel.Person', { badge: null }, 'badge', 'rel.Badge.holder'],
    ['rel.Badge', { holder: { badge: {} } }, 'holder.badge', 'rel.Badge.holder'],
  ])('an inverse relation cannot be written through a %s: %j', async (model, data, path, holder) => {
    expect(await faultsOf(model, data)).toEqual({
      kind: 'invalid',
      errors: { [path]: `is the inverse of ${holder}: change that field instead` },
    })
  })

  test.each([
    [{}],
    [{ username: 'eve', password: 'correct horse battery' }],
    [{ id: 1, version: 0 }],
    [{ id: 1, version: 0, roles: ['administrator'] }],
  ])('a user cannot be created or changed through another record: %j', async (sent) => {
    expect(await faultsOf('rel.Person', { keeper: sent })).toEqual({
      kind: 'invalid',
      errors: { keeper: 'can only refer to a verso.auth.User, not write it: send only { "id": 1 }' },
    })
  })
})
