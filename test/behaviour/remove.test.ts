import { expect, test } from 'vitest'
import { onEveryTarget, catchError } from '../targets.js'
import { idsOf, inShort, useRelatedService } from './related-service.js'

onEveryTarget((engine, transport) => {
  const { service, records, make, change, read, changesOf, expectRolledBack } = useRelatedService(
    engine,
    transport,
  )

  const remove = (model: string, id: number, options = {}) => records().remove(model, id, options)
  const isGone = async (model: string, id: number) => (await catchError(read(model, id))).kind === 'not-found'

  test('a delete of a referenced record is rejected with the records that refer to it', async () => {
    const company = await make('rel.Company', { name: 'Needed' })
    const a = await make('rel.Person', { name: 'A', company: { id: company.id } })
    const b = await make('rel.Person', { name: 'B', company: { id: company.id } })
    const child = await make('rel.Company', { name: 'Child', parent: { id: company.id } })
    const error = await expectRolledBack(() => remove('rel.Company', company.id))
    expect(error.kind).toBe('still-referenced')
    expect(error.details.data).toEqual({
      entityName: 'rel.Company',
      entityId: company.id,
      references: [
        { entityName: 'rel.Company', field: 'parent', total: 1, ids: [child.id] },
        { entityName: 'rel.Person', field: 'company', total: 2, ids: [a.id, b.id] },
      ],
    })
    expect(error.message).toBe(
      `rel.Company ${company.id} is still referenced by rel.Company ${child.id} (parent); ` +
        `rel.Person ${a.id}, ${b.id} (company): change or delete those records first; nothing was changed`,
    )
    for (const { id } of [a, b]) await remove('rel.Person', id)
    await remove('rel.Company', child.id)
    await remove('rel.Company', company.id)
    expect(await isGone('rel.Company', company.id)).toBe(true)
  })

  test('a rejected delete lists 10 referring records and counts all', async () => {
    const boss = await make('rel.Person', { name: 'Boss' })
    const ids: number[] = []
    for (let index = 0; index < 12; index++) {
      ids.push((await make('rel.Person', { boss: { id: boss.id } })).id)
    }
    const shown = ids.slice(0, 10)
    const error = await expectRolledBack(() => remove('rel.Person', boss.id))
    expect(error.details.data?.['references']).toEqual([
      { entityName: 'rel.Person', field: 'boss', total: 12, ids: shown },
    ])
    expect(error.message).toBe(
      `rel.Person ${boss.id} is still referenced by rel.Person ${shown.join(', ')} and 2 more (boss): change or delete those records first; nothing was changed`,
    )
  })

  test('a one-to-one reference prevents the delete of its record', async () => {
    const person = await make('rel.Person', { name: 'Holder' })
    const badge = await make('rel.Badge', { holder: { id: person.id } })
    const error = await expectRolledBack(() => remove('rel.Person', person.id))
    expect(error.details.data?.['references']).toEqual([
      { entityName: 'rel.Badge', field: 'holder', total: 1, ids: [badge.id] },
    ])
    await remove('rel.Badge', badge.id)
    await remove('rel.Person', person.id)
  })

  test('a delete also deletes owned records at every level, each with its own Change', async () => {
    const company = await make('rel.Company', {
      name: 'All',
      addresses: [{ city: 'A', doors: [{ pin: '1' }, {}] }, { city: 'B' }],
    })
    const [a = { id: 0 }, b = { id: 0 }] = idsOf(company, 'addresses')
    const doors = idsOf(await read('rel.Address', a.id), 'doors')
    const [first = { id: 0 }, second = { id: 0 }] = doors
    const changes = await changesOf(() => remove('rel.Company', company.id))
    expect(inShort(changes)).toEqual([
      `rel.Company ${company.id} delete 1`,
      `rel.Address ${a.id} delete 1`,
      `rel.Door ${first.id} delete 1`,
      `rel.Door ${second.id} delete 1`,
      `rel.Address ${b.id} delete 1`,
    ])
    expect(await isGone('rel.Company', company.id)).toBe(true)
    for (const { id } of [a, b]) expect(await isGone('rel.Address', id)).toBe(true)
    for (const { id } of doors) expect(await isGone('rel.Door', id)).toBe(true)
    const dropped = { company: { before: { id: company.id }, after: null } }
    expect(changes.map((change) => change.changes)).toEqual([
      { name: { before: 'All', after: null }, addresses: { before: [a, b], after: null } },
      { city: { before: 'A', after: null }, doors: { before: doors, after: null }, ...dropped },
      { address: { before: a, after: null } },
      { address: { before: a, after: null } },
      { city: { before: 'B', after: null }, ...dropped },
    ])
  })

  test('a member that leaves a list is deleted with the records it owns', async () => {
    const company = await make('rel.Company', { name: 'Part', addresses: [{ city: 'A', doors: [{}] }] })
    const [a = { id: 0 }] = idsOf(company, 'addresses')
    const [inner = { id: 0 }] = idsOf(await read('rel.Address', a.id), 'doors')
    const changes = await changesOf(() => change('rel.Company', company.id, { version: 0, addresses: [] }))
    expect(inShort(changes)).toEqual([
      `rel.Company ${company.id} update 1`,
      `rel.Address ${a.id} delete 1`,
      `rel.Door ${inner.id} delete 1`,
    ])
    expect(changes.map((change) => change.changes)).toMatchObject([
      { addresses: { before: [a], after: [] } },
      { company: { before: { id: company.id }, after: null } },
      { address: { before: a, after: null } },
    ])
  })

  test('a delete of a record with links removes the links and keeps the related records unchanged', async () => {
    const person = await make('rel.Person', { circles: [{ name: 'A' }, { name: 'B' }] })
    const circles = idsOf(person, 'circles')
    const changes = await changesOf(() => remove('rel.Person', person.id))
    expect(inShort(changes)).toEqual([`rel.Person ${person.id} delete 1`])
    expect(changes[0]?.changes).toEqual({ circles: { before: circles, after: null } })
    const links = 'select "member" from "rel.Person:circles" where "owner" = ?'
    expect(await service().app.db.reader.all(links, [person.id])).toEqual([])
    for (const { id } of circles) {
      const { version, members } = await records().fetch('rel.Circle', id, { fields: ['members'] })
      expect({ version, members }).toEqual({ version: 0, members: [] })
    }
  })

  test('a delete of a linked record increments the version of each record that links to it, with a Change', async () => {
    const circle = await make('rel.Circle', { name: 'Gone' })
    const kept = await make('rel.Circle', { name: 'Kept' })
    const [out, stays] = [{ id: circle.id }, { id: kept.id }]
    const a = await make('rel.Person', { circles: [out, stays] })
    const b = await make('rel.Person', { circles: [out] })
    const other = await make('rel.Person', { circles: [stays] })
    const changes = await changesOf(() => remove('rel.Circle', circle.id))
    expect(inShort(changes)).toEqual([
      `rel.Person ${a.id} update 1`,
      `rel.Person ${b.id} update 1`,
      `rel.Circle ${circle.id} delete 1`,
    ])
    expect(changes.slice(0, 2).map((change) => change.changes)).toEqual([
      { circles: { before: [out, stays], after: [stays] } },
      { circles: { before: [out], after: [] } },
    ])
    expect(idsOf(await read('rel.Person', a.id), 'circles')).toEqual([stays])
    expect(await read('rel.Person', other.id)).toMatchObject({ version: 0 })
  })

  test('a save that drops a referenced member is rejected as still-referenced', async () => {
    const company = await make('rel.Company', { name: 'From', addresses: [{ city: 'A' }, { city: 'B' }] })
    const [a = { id: 0 }, b = { id: 0 }] = idsOf(company, 'addresses')
    const other = await make('rel.Company', { name: 'Other', seat: a })
    const error = await expectRolledBack(() =>
      change('rel.Company', company.id, { version: 0, name: 'X', addresses: [b, { city: 'C' }] }),
    )
    expect(error).toMatchObject({
      kind: 'still-referenced',
      message: `rel.Address ${a.id} is still referenced by rel.Company ${other.id} (seat): change or delete those records first; nothing was changed`,
      details: {
        data: {
          entityName: 'rel.Address',
          entityId: a.id,
          references: [{ entityName: 'rel.Company', field: 'seat', total: 1, ids: [other.id] }],
        },
      },
    })
  })

  test('a delete of an owner is rejected while others refer to its owned records', async () => {
    const company = await make('rel.Company', { name: 'Owner', addresses: [{ city: 'A' }, { city: 'B' }] })
    const [, b = { id: 0 }] = idsOf(company, 'addresses')
    const other = await make('rel.Company', { name: 'Other', seat: b })
    const error = await expectRolledBack(() => remove('rel.Company', company.id))
    expect(error.details.data).toEqual({
      ...{ entityName: 'rel.Address', entityId: b.id },
      references: [{ entityName: 'rel.Company', field: 'seat', total: 1, ids: [other.id] }],
    })
    expect(error.message).toBe(
      `rel.Address ${b.id} is still referenced by rel.Company ${other.id} (seat): change or delete those records first; nothing was changed`,
    )
    const emptied = await expectRolledBack(() =>
      change('rel.Company', company.id, { version: 0, addresses: [] }),
    )
    expect(emptied.details.data).toEqual(error.details.data)
  })

  test('a save may clear a reference and drop its record at the same time', async () => {
    const company = await make('rel.Company', { name: 'Seat', addresses: [{ city: 'A' }] })
    const [a = { id: 0 }] = idsOf(company, 'addresses')
    await change('rel.Company', company.id, { version: 0, seat: a })
    const kept = await expectRolledBack(() =>
      change('rel.Company', company.id, { version: 1, addresses: [] }),
    )
    expect(kept.kind).toBe('still-referenced')
    await change('rel.Company', company.id, { version: 1, seat: null, addresses: [] })
    expect(await isGone('rel.Address', a.id)).toBe(true)
  })

  test('a record that refers to itself or to a record it owns can be deleted', async () => {
    const company = await make('rel.Company', { name: 'Own', addresses: [{ city: 'A' }] })
    const [a = { id: 0 }] = idsOf(company, 'addresses')
    await change('rel.Company', company.id, { version: 0, seat: a, parent: { id: company.id } })
    const changes = await changesOf(() => remove('rel.Company', company.id, { version: 1 }))
    expect(inShort(changes)).toEqual([`rel.Company ${company.id} delete 2`, `rel.Address ${a.id} delete 1`])
    expect(changes[0]?.changes).toMatchObject({
      seat: { before: a, after: null },
      parent: { before: { id: company.id }, after: null },
    })
  })

  test('records in a chain of references can only be deleted from its start', async () => {
    const c = await make('rel.Company', { name: 'C' })
    const b = await make('rel.Company', { name: 'B', parent: { id: c.id } })
    const a = await make('rel.Company', { name: 'A', parent: { id: b.id } })
    for (const { id } of [c, b]) {
      const error = await expectRolledBack(() => remove('rel.Company', id))
      expect(error.kind).toBe('still-referenced')
    }
    for (const { id } of [a, b, c]) await remove('rel.Company', id)
    for (const { id } of [a, b, c]) expect(await isGone('rel.Company', id)).toBe(true)
  })

  test('a delete with an outdated version is a conflict, and no owned record is deleted', async () => {
    const company = await make('rel.Company', { name: 'V', addresses: [{ city: 'A' }] })
    await make('rel.Address', { city: 'B', company: { id: company.id } })
    const byVersion = await expectRolledBack(() => remove('rel.Company', company.id, { version: 0 }))
    expect(byVersion).toMatchObject({
      kind: 'conflict',
      details: { data: { entityId: company.id, expected: 0, current: 1, mergeable: false } },
    })
    const byMatch = await expectRolledBack(() => remove('rel.Company', company.id, { ifMatch: 0 }))
    expect(byMatch.kind).toBe('stale-match')
    await remove('rel.Company', company.id, { ifMatch: 1 })
    expect(await isGone('rel.Company', company.id)).toBe(true)
  })

  test('of a concurrent delete and new reference, exactly one succeeds', async () => {
    const people = [1, 2, 3, 4, 5].map(async () => {
      const company = await make('rel.Company', { name: 'Raced' })
      const [removed, referred] = await Promise.allSettled([
        remove('rel.Company', company.id),
        make('rel.Person', { company: { id: company.id } }),
      ])
      return { removed: removed.status, referred: referred.status }
    })
    for (const { removed, referred } of await Promise.all(people)) {
      expect(removed === 'fulfilled').not.toBe(referred === 'fulfilled')
    }
  })
})
