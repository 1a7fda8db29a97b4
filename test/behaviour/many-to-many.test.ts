import { expect, test } from 'vitest'
import { onEveryTarget } from '../targets.js'
import { idsOf, inShort, listOf, referenceOf, useRelatedService } from './related-service.js'

onEveryTarget((engine, transport) => {
  const { records, make, change, read, changesOf, expectRolledBack } = useRelatedService(engine, transport)

  const circle = async (name: string) => {
    const { id } = await make('rel.Circle', { name })
    return { id }
  }

  test('a many-to-many is sorted by id, and sending it in another order is no change', async () => {
    const [a, b, c] = [await circle('A'), await circle('B'), await circle('C')]
    const person = await make('rel.Person', { circles: [c, a] })
    expect(person['circles']).toEqual([
      { ...a, $version: 0, name: 'A' },
      { ...c, $version: 0, name: 'C' },
    ])
    const changed = await change('rel.Person', person.id, { version: 0, circles: [c, b, a] })
    expect(idsOf(changed, 'circles')).toEqual([a, b, c])
    const shuffled = await changesOf(() =>
      change('rel.Person', person.id, { version: 1, circles: [b, c, a] }),
    )
    expect(shuffled.map((change) => change.changes)).toEqual([{}])
  })

  test('changed links increment the version of the record only, not of its related records', async () => {
    const [a, b] = [await circle('A'), await circle('B')]
    const person = await make('rel.Person', { circles: [a] })
    const changes = await changesOf(() => change('rel.Person', person.id, { version: 0, circles: [b] }))
    expect(inShort(changes)).toEqual([`rel.Person ${person.id} update 1`])
    expect(changes[0]?.changes).toEqual({ circles: { before: [a], after: [b] } })
    expect(await read('rel.Circle', a.id)).toMatchObject({ version: 0, name: 'A' })
    const emptied = await change('rel.Person', person.id, { version: 1, circles: [] })
    expect(emptied['circles']).toEqual([])
    expect(await read('rel.Circle', b.id)).toMatchObject({ version: 0 })
  })

  test('a save creates or updates related records and links them in one request', async () => {
    const a = await circle('A')
    const person = await make('rel.Person', { circles: [{ name: 'New' }, { ...a, version: 0, name: 'A2' }] })
    expect(person['circles']).toEqual([
      { ...a, $version: 1, name: 'A2' },
      { id: expect.any(Number), $version: 0, name: 'New' },
    ])
    const [, made] = listOf(person, 'circles')
    expect(await read('rel.Circle', made?.id ?? 0)).toMatchObject({ version: 0, name: 'New' })
  })

  test('changed links of a nested record increment its version; unchanged ones do not', async () => {
    const [a, b] = [await circle('A'), await circle('B')]
    const person = await make('rel.Person', { boss: { circles: [a] } })
    const boss = { id: referenceOf(person, 'boss').id, version: 0, circles: [b] }
    const changes = await changesOf(() => change('rel.Person', person.id, { version: 0, boss }))
    expect(inShort(changes)).toEqual([`rel.Person ${boss.id} update 1`, `rel.Person ${person.id} update 1`])
    expect(changes[0]?.changes).toEqual({ circles: { before: [a], after: [b] } })
    const same = { version: 1, boss: { ...boss, version: 1 } }
    const unchanged = await changesOf(() => change('rel.Person', person.id, same))
    expect(inShort(unchanged)).toEqual([`rel.Person ${person.id} update 2`])
  })

  test('a record sent back as read changes neither its links nor its related records', async () => {
    const person = await make('rel.Person', { circles: [{ name: 'A' }, { name: 'B' }] })
    const changes = await changesOf(() => change('rel.Person', person.id, person))
    expect(changes.map(({ model, changes: fields }) => ({ model, fields }))).toEqual([
      { model: 'rel.Person', fields: {} },
    ])
  })

  test('an update without the list keeps the links, and a value that is no list is rejected', async () => {
    const a = await circle('A')
    const person = await make('rel.Person', { circles: [a] })
    const named = await change('rel.Person', person.id, { version: 0, name: 'N' })
    expect(idsOf(named, 'circles')).toEqual([a])
    for (const circles of [null, {}, a, 5, 'x', true]) {
      const error = await expectRolledBack(() => change('rel.Person', person.id, { version: 1, circles }))
      expect(error.details.errors).toEqual({
        circles: 'must be a list (an empty list removes all members)',
      })
    }
  })

  test('a member twice in a list is rejected as invalid', async () => {
    const a = await circle('A')
    const error = await expectRolledBack(() => make('rel.Person', { circles: [a, a] }))
    expect(error).toMatchObject({
      kind: 'invalid',
      details: { errors: { 'circles[1]': 'is in the list twice' } },
    })
  })

  test('a record linked by several records shows them in the inverse relation, on request only', async () => {
    const a = await circle('A')
    const people = [
      await make('rel.Person', { name: 'P', circles: [a] }),
      await make('rel.Person', { name: 'Q', circles: [a] }),
    ]
    const fetched = await records().fetch('rel.Circle', a.id, { fields: ['members'] })
    expect(fetched).toEqual({
      ...{ id: a.id, version: 0 },
      members: people.map(({ id, name }) => ({ id, $version: 0, name })),
    })
    expect(await read('rel.Circle', a.id)).not.toHaveProperty('members')
  })

  test('an outdated update of links is a conflict that shows both lists', async () => {
    const [a, b, c] = [await circle('A'), await circle('B'), await circle('C')]
    const person = await make('rel.Person', { circles: [a] })
    await change('rel.Person', person.id, { version: 0, circles: [a, b] })
    const stale = { version: 0, circles: [{ name: 'New' }, c, a] }
    const error = await expectRolledBack(() => change('rel.Person', person.id, stale))
    expect(error).toMatchObject({ kind: 'conflict', details: { data: { mergeable: false } } })
    expect(error.details.data?.['fields']).toEqual({
      circles: { base: [a], ours: [a, c, { name: 'New' }], theirs: [a, b], verdict: 'clash' },
    })
  })

  test('of two concurrent replacements of the same links, one is a conflict', async () => {
    const circles = [await circle('A'), await circle('B')]
    const person = await make('rel.Person', { circles: [] })
    const results = await Promise.allSettled(
      circles.map((own) => change('rel.Person', person.id, { version: 0, circles: [own] })),
    )
    const rejected = results.filter((result) => result.status === 'rejected')
    expect(rejected).toMatchObject([{ reason: { kind: 'conflict' } }])
    const winner = results.findIndex((result) => result.status === 'fulfilled')
    expect(idsOf(await read('rel.Person', person.id), 'circles')).toEqual([circles[winner]])
  })
})
