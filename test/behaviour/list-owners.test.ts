import { expect, test } from 'vitest'
import type { Change } from '../../src/wire.js'
import { onEveryTarget } from '../targets.js'
import { idsOf, inShort, listOf, useRelatedService } from './related-service.js'

onEveryTarget((engine, transport) => {
  const { records, make, change, read, changesOf, expectRolledBack } = useRelatedService(engine, transport)

  const withCities = async (...cities: readonly string[]) => {
    const company = await make('rel.Company', { name: 'O', addresses: cities.map((city) => ({ city })) })
    return { company, members: idsOf(company, 'addresses') }
  }
  const ofOwner = (changes: readonly Change[], id: number) =>
    changes.filter((change) => change.model === 'rel.Company' && change.id === id)

  test("a create of a member with a reference to its owner increments the owner's version by one", async () => {
    const { company, members } = await withCities('A')
    const changes = await changesOf(async () => {
      const added = await make('rel.Address', { city: 'B', company: { id: company.id } })
      expect(added['company']).toEqual({ id: company.id, $version: 1, name: 'O' })
    })
    const now = await read('rel.Company', company.id)
    expect(now).toMatchObject({ version: 1, updatedBy: { id: 1 }, updatedOn: expect.any(String) })
    expect(changes).toHaveLength(2)
    expect(ofOwner(changes, company.id)).toMatchObject([
      {
        ...{ action: 'update', version: 1, by: { id: 1 } },
        changes: { addresses: { before: members, after: idsOf(now, 'addresses') } },
      },
    ])
    expect(idsOf(now, 'addresses')).toHaveLength(2)
  })

  test("a delete of a member increments its owner's version by one", async () => {
    const { company, members } = await withCities('A', 'B')
    const [a = { id: 0 }, b = { id: 0 }] = members
    const changes = await changesOf(() => records().remove('rel.Address', a.id))
    expect(inShort(changes)).toEqual([`rel.Company ${company.id} update 1`, `rel.Address ${a.id} delete 1`])
    expect(changes.map((change) => change.changes)).toMatchObject([
      { addresses: { before: members, after: [b] } },
      { company: { before: { id: company.id }, after: null } },
    ])
  })

  test('a member moved by its reference increments the versions of both owners by one', async () => {
    const { company: from, members } = await withCities('A')
    const { company: to } = await withCities()
    const [a = { id: 0 }] = members
    const moved = { version: 0, company: { id: to.id } }
    const changes = await changesOf(() => change('rel.Address', a.id, moved))
    expect(changes).toHaveLength(3)
    expect(ofOwner(changes, from.id)).toMatchObject([
      { version: 1, changes: { addresses: { before: [a], after: [] } } },
    ])
    expect(ofOwner(changes, to.id)).toMatchObject([
      { version: 1, changes: { addresses: { before: [], after: [a] } } },
    ])
    const out = await changesOf(() => change('rel.Address', a.id, { version: 1, company: null }))
    expect(ofOwner(out, to.id)).toMatchObject([
      { version: 2, changes: { addresses: { before: [a], after: [] } } },
    ])
  })

  test("a change of a member's fields does not increment its owner's version", async () => {
    const { company, members } = await withCities('A')
    const [a = { id: 0 }] = members
    await change('rel.Address', a.id, { version: 0, city: 'A2', company: { id: company.id } })
    await change('rel.Address', a.id, { version: 1, doors: [{}] })
    const now = await read('rel.Company', company.id)
    expect(now).toMatchObject({ version: 0, addresses: [{ id: a.id, $version: 2, city: 'A2' }] })
  })

  test('an update of the owner from before a member was added is a conflict that shows the new list', async () => {
    const { company, members } = await withCities('A')
    const [a] = members
    const added = await make('rel.Address', { city: 'B', company: { id: company.id } })
    const error = await expectRolledBack(() => change('rel.Company', company.id, company))
    expect(error.kind).toBe('conflict')
    expect(error.details.data).toMatchObject({
      ...{ expected: 0, current: 1, mergeable: true },
      theirs: { addresses: [{ id: a?.id }, { id: added.id, city: 'B' }] },
    })
    expect(error.details.data?.['fields']).toEqual({
      addresses: { base: [a], ours: [a], theirs: [a, { id: added.id }], verdict: 'theirs' },
    })
  })

  test('a conflict shows lists as member ids, and new members with their values but no secrets', async () => {
    const { company, members } = await withCities('A', 'B')
    const [a, b] = members
    const theirs = await change('rel.Company', company.id, { version: 0, addresses: [a] })
    const conflictOf = async (addresses: readonly unknown[]) => {
      const sent = { version: 0, addresses }
      const error = await expectRolledBack(() => change('rel.Company', company.id, sent))
      return error.details.data
    }
    expect(theirs['addresses']).toHaveLength(1)
    expect(await conflictOf([a])).toMatchObject({
      mergeable: true,
      fields: { addresses: { base: [a, b], ours: [a], theirs: [a], verdict: 'same' } },
    })
    expect(await conflictOf([{ ...b, version: 0, city: 'B2' }, a])).toMatchObject({
      mergeable: true,
      fields: { addresses: { base: [a, b], ours: [a, b], theirs: [a], verdict: 'theirs' } },
    })
    const added = { city: 'C', doors: [{ pin: 'told-secret' }] }
    const clash = await conflictOf([added, b])
    expect(clash).toMatchObject({
      mergeable: false,
      fields: { addresses: { base: [a, b], ours: [b, { city: 'C' }], theirs: [a], verdict: 'clash' } },
    })
    expect(JSON.stringify(clash)).not.toMatch(/told-secret/)
  })

  test('a list changed only by us has the verdict ours, and fields changed by others theirs', async () => {
    const { company, members } = await withCities('A')
    await change('rel.Company', company.id, { version: 0, name: 'Theirs' })
    const error = await expectRolledBack(() =>
      change('rel.Company', company.id, { version: 0, addresses: [] }),
    )
    expect(error.details.data).toMatchObject({
      mergeable: true,
      fields: {
        addresses: { base: members, ours: [], theirs: members, verdict: 'ours' },
        name: { base: 'O', theirs: 'Theirs', verdict: 'theirs' },
      },
    })
  })

  test("two members added in one request increment the owner's version once", async () => {
    const { company } = await withCities()
    const address = (city: string) => ({ city, company: { id: company.id } })
    const changes = await changesOf(() =>
      make('rel.Company', { name: 'X', seat: address('A'), parent: { name: 'Y', seat: address('B') } }),
    )
    const now = await read('rel.Company', company.id)
    expect(now.version).toBe(1)
    expect(ofOwner(changes, company.id)).toMatchObject([
      { version: 1, changes: { addresses: { before: [], after: idsOf(now, 'addresses') } } },
    ])
    expect(listOf(now, 'addresses').map(({ city }) => city)).toHaveLength(2)
  })

  test('an owner saved along with its list increments its version once', async () => {
    const { company, members } = await withCities('A', 'B')
    const [a, b] = members
    const data = { version: 0, name: 'New', addresses: [a, { ...b, version: 0, city: 'B2' }, { city: 'C' }] }
    const changes = await changesOf(() => change('rel.Company', company.id, data))
    expect(ofOwner(changes, company.id)).toMatchObject([
      { version: 1, changes: { name: { before: 'O', after: 'New' }, addresses: { before: members } } },
    ])
    expect(await read('rel.Company', company.id)).toMatchObject({ version: 1 })
  })

  test('an owner changed through a new member increments its version once', async () => {
    const { company } = await withCities('A')
    const data = { city: 'B', company: { id: company.id, version: 0, name: 'New' } }
    const changes = await changesOf(() => make('rel.Address', data))
    const now = await read('rel.Company', company.id)
    expect(now).toMatchObject({ version: 1, name: 'New', addresses: [{ city: 'A' }, { city: 'B' }] })
    expect(ofOwner(changes, company.id)).toMatchObject([
      { version: 1, changes: { name: { after: 'New' }, addresses: { after: idsOf(now, 'addresses') } } },
    ])
  })

  test("a member moved between two owners in one request increments each owner's version once", async () => {
    const company = await make('rel.Company', {
      name: 'M',
      addresses: [{ city: 'A' }, { city: 'B', doors: [{}] }],
    })
    const [a = { id: 0 }, b = { id: 0 }] = idsOf(company, 'addresses')
    const [moving] = idsOf(await read('rel.Address', b.id), 'doors')
    const taking = { ...a, version: 0, doors: [{ ...moving, version: 0 }] }
    const changes = await changesOf(() =>
      change('rel.Company', company.id, {
        version: 0,
        addresses: [taking, { ...b, version: 0, city: 'B2', doors: [] }],
      }),
    )
    expect(inShort(changes).toSorted()).toEqual(
      [
        `rel.Company ${company.id} update 1`,
        `rel.Address ${a.id} update 1`,
        `rel.Address ${b.id} update 1`,
        `rel.Door ${moving?.id ?? 0} update 1`,
      ].toSorted(),
    )
    const given = changes.find(({ model, id }) => model === 'rel.Address' && id === b.id)
    expect(given?.changes).toEqual({
      city: { before: 'B', after: 'B2' },
      doors: { before: [moving], after: [] },
    })
  })

  test('members created concurrently are all in the list, each with its own version of the owner', async () => {
    const { company } = await withCities()
    const cities = Array.from({ length: 20 }, (_, index) => `City ${index}`)
    const changes = await changesOf(() =>
      Promise.all(cities.map((city) => make('rel.Address', { city, company: { id: company.id } }))),
    )
    const now = await read('rel.Company', company.id)
    expect(now.version).toBe(20)
    expect(
      listOf(now, 'addresses')
        .map(({ city }) => city)
        .toSorted(),
    ).toEqual(cities.toSorted())
    const sizes = ofOwner(changes, company.id).map(({ changes: { addresses } }) => [
      (addresses?.before as readonly unknown[]).length,
      (addresses?.after as readonly unknown[]).length,
    ])
    expect(sizes).toEqual(cities.map((_, index) => [index, index + 1]))
  })

  test('members moved concurrently between two owners all arrive, each with its own version of both owners', async () => {
    const { company: left, members: lefts } = await withCities('A', 'B', 'C')
    const { company: right, members: rights } = await withCities('D', 'E', 'F')
    const move = (to: number) => (member: { readonly id: number }) =>
      change('rel.Address', member.id, { version: 0, company: { id: to } })
    await Promise.all([...lefts.map(move(right.id)), ...rights.map(move(left.id))])
    const [leftNow, rightNow] = [await read('rel.Company', left.id), await read('rel.Company', right.id)]
    expect([leftNow.version, rightNow.version]).toEqual([6, 6])
    expect([idsOf(leftNow, 'addresses'), idsOf(rightNow, 'addresses')]).toEqual([rights, lefts])
  })
})
