import { expect, test } from 'vitest'
import type { WireRecord } from '../../src/wire.js'
import { countAnew, onEveryTarget, catchError } from '../targets.js'
import { idsOf, inShort, listOf, referenceOf, useRelatedService, type Shown } from './related-service.js'

onEveryTarget((engine, transport) => {
  const { service, records, make, change, read, changesOf, expectRolledBack } = useRelatedService(
    engine,
    transport,
  )

  /** Creates a company with an address for each city. */
  const withCities = async (...cities: readonly string[]) => {
    const company = await make('rel.Company', { name: 'L', addresses: cities.map((city) => ({ city })) })
    return { company, addresses: listOf(company, 'addresses') }
  }
  const cityOf = ({ city }: Shown) => city
  const rejectedChange = (company: WireRecord, addresses: unknown) =>
    expectRolledBack(() => change('rel.Company', company.id, { version: company.version, addresses }))

  test('a list sent in an update replaces the stored one by id: members kept, changed, added and deleted', async () => {
    const { company, addresses } = await withCities('A', 'B', 'C')
    const [a, b, c] = addresses
    const changes = await changesOf(() =>
      change('rel.Company', company.id, {
        version: 0,
        addresses: [{ id: a?.id }, { id: b?.id, version: 0, city: 'B2' }, { city: 'D' }],
      }),
    )
    const now = await read('rel.Company', company.id)
    expect(now.version).toBe(1)
    expect(listOf(now, 'addresses').map(cityOf)).toEqual(['A', 'B2', 'D'])
    expect(listOf(now, 'addresses').map(({ $version }) => $version)).toEqual([0, 1, 0])
    const [, , d] = listOf(now, 'addresses')
    expect((await catchError(read('rel.Address', c?.id ?? 0))).kind).toBe('not-found')
    expect(inShort(changes)).toEqual([
      `rel.Company ${company.id} update 1`,
      `rel.Address ${c?.id ?? 0} delete 1`,
      `rel.Address ${b?.id ?? 0} update 1`,
      `rel.Address ${d?.id ?? 0} create 0`,
    ])
    expect(changes[0]?.changes).toEqual({
      addresses: {
        before: [{ id: a?.id }, { id: b?.id }, { id: c?.id }],
        after: [{ id: a?.id }, { id: b?.id }, { id: d?.id }],
      },
    })
  })

  test('an update without the list keeps it, and an empty list deletes all members', async () => {
    const { company, addresses } = await withCities('A', 'B')
    const named = await change('rel.Company', company.id, { version: 0, name: 'N' })
    expect(named['addresses']).toEqual(addresses)
    const emptied = await change('rel.Company', company.id, { version: 1, addresses: [] })
    expect(emptied['addresses']).toEqual([])
    for (const { id } of addresses) {
      expect((await catchError(read('rel.Address', id))).kind).toBe('not-found')
    }
  })

  test.each([[null], [{}], [5], ['x'], [''], [true], [false], [{ id: 1 }]])(
    'a list sent as %j is rejected as invalid and keeps its members',
    async (sent) => {
      const { company } = await withCities('A')
      const error = await rejectedChange(company, sent)
      expect(error).toMatchObject({
        kind: 'invalid',
        details: { errors: { addresses: 'must be a list (an empty list removes all members)' } },
      })
    },
  )

  test.each([[null], [5], ['x'], [true], [[]]])(
    'a member sent as %j is rejected as invalid',
    async (sent) => {
      const { company } = await withCities('A')
      const error = await rejectedChange(company, [sent])
      expect(error.details.errors).toEqual({ 'addresses[0]': expect.stringMatching(/^must be an object/) })
    },
  )

  test('a member twice in an owned list is rejected as invalid', async () => {
    const { company, addresses } = await withCities('A')
    const id = addresses[0]?.id
    const twice = { 'addresses[1]': 'is in the list twice' }
    for (const list of [
      [{ id }, { id }],
      [{ id }, { id, version: 0, city: 'B' }],
    ]) {
      expect((await rejectedChange(company, list)).details.errors).toEqual(twice)
    }
    const changed = { id, version: 0, city: 'B' }
    expect((await rejectedChange(company, [changed, changed])).details.errors).toHaveProperty([
      'addresses[1]',
    ])
  })

  test('an outdated version of a member is a conflict about that member, and nothing is written', async () => {
    const { company, addresses } = await withCities('A', 'B')
    const [a, b] = addresses
    await change('rel.Address', b?.id ?? 0, { version: 0, city: 'Theirs' })
    const list = [
      { id: a?.id, version: 0, city: 'A2' },
      { id: b?.id, version: 0, city: 'Ours' },
      { city: 'C' },
    ]
    const error = await expectRolledBack(() =>
      change('rel.Company', company.id, { version: 0, name: 'X', addresses: list }),
    )
    expect(error).toMatchObject({
      kind: 'conflict',
      message: `rel.Address ${b?.id ?? 0} is at version 1, not 0: read it again and retry; nothing was changed`,
      details: {
        data: {
          ...{ entityName: 'rel.Address', entityId: b?.id, expected: 0, current: 1, mergeable: false },
          fields: { city: { base: 'B', ours: 'Ours', theirs: 'Theirs', verdict: 'clash' } },
        },
      },
    })
  })

  test('members created in a list can have lists of their own', async () => {
    const company = await make('rel.Company', {
      name: 'Deep',
      addresses: [{ city: 'A', doors: [{ code: `${engine}-${transport}-1` }, { pin: '1' }] }, { city: 'B' }],
    })
    const [a, b] = listOf(company, 'addresses')
    const address = await read('rel.Address', a?.id ?? 0)
    expect(listOf(address, 'doors').map((shown) => shown['code'])).toEqual([`${engine}-${transport}-1`, null])
    expect(referenceOf(address, 'company')).toEqual({ id: company.id, $version: 0, name: 'Deep' })
    expect((await read('rel.Address', b?.id ?? 0))['doors']).toEqual([])
  })

  test("a member's reference to its owner may be absent, null or that owner; any other is rejected", async () => {
    const { company, addresses } = await withCities('A', 'B')
    const other = await make('rel.Company', { name: 'Other' })
    const [a, b] = addresses
    const own = { id: company.id, $version: 0, name: 'L' }
    const changed = await change('rel.Company', company.id, {
      version: 0,
      addresses: [
        { id: a?.id, version: 0, city: 'A2', company: own },
        { id: b?.id, version: 0, city: 'B2', company: null },
        { city: 'C', company: { id: company.id } },
        { city: 'D', company: null },
      ],
    })
    expect(listOf(changed, 'addresses').map(cityOf)).toEqual(['A2', 'B2', 'C', 'D'])
    const fault = 'is set by the list that contains this record: omit it'
    const error = await rejectedChange(changed, [
      { id: a?.id, version: 1, company: { id: other.id } },
      { city: 'E', company: { name: 'New' } },
      { city: 'F', company: 5 },
    ])
    expect(error.details.errors).toEqual({
      'addresses[0].company': fault,
      'addresses[1].company': fault,
      'addresses[2].company': fault,
    })
    const created = await expectRolledBack(() =>
      make('rel.Company', { name: 'New', addresses: [{ city: 'A', company: { id: other.id } }] }),
    )
    expect(created.details.errors).toEqual({ 'addresses[0].company': fault })
  })

  test("a member of another owner's list is rejected without its version", async () => {
    const { company: theirs, addresses } = await withCities('A')
    const { company: ours } = await withCities()
    const error = await rejectedChange(ours, [{ id: addresses[0]?.id }])
    expect(error).toMatchObject({
      kind: 'invalid',
      details: {
        errors: {
          'addresses[0]': `is in the list of rel.Company ${theirs.id}: send its "version" to move it`,
        },
      },
    })
  })

  test("a member sent with its version moves between lists and increments both owners' versions by one", async () => {
    const { company: theirs, addresses } = await withCities('A', 'B')
    const { company: ours } = await withCities('C')
    const [a = { id: 0 }, b = { id: 0 }] = addresses
    const [c = { id: 0 }] = listOf(ours, 'addresses')
    const changes = await changesOf(() =>
      change('rel.Company', ours.id, { version: 0, addresses: [{ id: c.id }, { id: a.id, version: 0 }] }),
    )
    expect(inShort(changes).toSorted()).toEqual(
      [
        `rel.Company ${ours.id} update 1`,
        `rel.Company ${theirs.id} update 1`,
        `rel.Address ${a.id} update 1`,
      ].toSorted(),
    )
    const changeOf = (model: string, id: number) =>
      changes.find((change) => change.model === model && change.id === id)?.changes
    expect(changeOf('rel.Company', theirs.id)).toEqual({
      addresses: { before: [{ id: a.id }, { id: b.id }], after: [{ id: b.id }] },
    })
    expect(changeOf('rel.Company', ours.id)).toEqual({
      addresses: { before: [{ id: c.id }], after: [{ id: a.id }, { id: c.id }] },
    })
    expect(changeOf('rel.Address', a.id)).toEqual({
      company: { before: { id: theirs.id }, after: { id: ours.id } },
    })
    expect(idsOf(await read('rel.Company', theirs.id), 'addresses')).toEqual([{ id: b.id }])
  })

  test('a record without an owner joins a list by its id alone', async () => {
    const { company } = await withCities()
    const address = await make('rel.Address', { city: 'Free' })
    const changed = await change('rel.Company', company.id, {
      version: 0,
      addresses: [{ id: address.id }],
    })
    expect(changed['addresses']).toEqual([{ id: address.id, $version: 1, city: 'Free' }])
    expect(await read('rel.Address', address.id)).toMatchObject({ company: { id: company.id, $version: 1 } })
  })

  test('a new member may take the unique value of a member that leaves the list', async () => {
    const code = `taken-${engine}-${transport}`
    const address = await make('rel.Address', { city: 'A', doors: [{ code }] })
    const [old] = listOf(address, 'doors')
    const changed = await change('rel.Address', address.id, { version: 0, doors: [{ code }] })
    const [now] = listOf(changed, 'doors')
    expect(now).toMatchObject({ code, $version: 0 })
    expect(now?.id).not.toBe(old?.id)
    const both = [{ id: now?.id }, { code }]
    const error = await expectRolledBack(() => change('rel.Address', address.id, { version: 1, doors: both }))
    expect(error).toMatchObject({ kind: 'not-unique', details: { data: { entityName: 'rel.Door' } } })
  })

  test('an owned list holds 1,000 members, and another one is rejected from either side', async () => {
    const { company } = await withCities()
    await service().app.db.transaction(async (tx) => {
      for (let index = 0; index < 1_000; index++)
        await tx.run('insert into "rel.Address" ("version", "city", "company") values (0, ?, ?)', [
          `City ${index}`,
          company.id,
        ])
    })
    await countAnew(service(), 'rel.Address')
    const full = await read('rel.Company', company.id)
    const members = idsOf(full, 'addresses')
    expect(members).toHaveLength(1_000)
    expect(await change('rel.Company', company.id, { version: 0, addresses: members })).toMatchObject({
      version: 1,
    })
    const errors = { addresses: 'must have at most 1000 members' }
    const free = await make('rel.Address', { city: 'Free' })
    const attempts = [
      () => change('rel.Company', company.id, { version: 1, addresses: [...members, { id: free.id }] }),
      () => make('rel.Address', { city: 'New', company: { id: company.id } }),
      () => change('rel.Address', free.id, { version: 0, company: { id: company.id } }),
    ]
    for (const attempt of attempts) {
      expect(await expectRolledBack(attempt)).toMatchObject({ kind: 'invalid', details: { errors } })
    }
    const [first = { id: 0 }] = members
    expect(await change('rel.Address', first.id, { version: 0, city: 'Same place' })).toMatchObject({
      version: 1,
    })
  })

  test('a list that had over 1,000 members before it became owned can be read and shrunk', async () => {
    const { company } = await withCities()
    await service().app.db.transaction(async (tx) => {
      for (let index = 0; index < 1_003; index++)
        await tx.run('insert into "rel.Address" ("version", "city", "company") values (0, ?, ?)', [
          'C',
          company.id,
        ])
    })
    await countAnew(service(), 'rel.Address')
    const [first = { id: 0 }, second = { id: 0 }] = idsOf(await read('rel.Company', company.id), 'addresses')
    await records().remove('rel.Address', first.id)
    expect(await change('rel.Address', second.id, { version: 0, company: null })).toMatchObject({
      company: null,
    })
    const rest = await read('rel.Company', company.id)
    expect(rest.version).toBe(2)
    expect(idsOf(rest, 'addresses')).toHaveLength(1_001)
    await records().remove('rel.Company', company.id)
  })
})
