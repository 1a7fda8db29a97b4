import { expect, test } from 'vitest'
import { onEveryTarget } from '../targets.js'
import { useRelatedService } from './related-service.js'

onEveryTarget((engine, transport) => {
  const { records, make, change, read, expectRolledBack } = useRelatedService(engine, transport)

  test('a second record with the same one-to-one reference is rejected as not-unique with the field', async () => {
    const person = await make('rel.Person', { name: 'Holder' })
    await make('rel.Badge', { holder: { id: person.id } })
    const second = await expectRolledBack(() => make('rel.Badge', { holder: { id: person.id } }))
    expect(second).toMatchObject({
      kind: 'not-unique',
      details: { data: { entityName: 'rel.Badge', fields: ['holder'] } },
    })
    await make('rel.Badge', { holder: null })
    await make('rel.Badge', { holder: null })
  })

  test('the inverse of a one-to-one is shown on request only, and null if there is none', async () => {
    const person = await make('rel.Person', { name: 'Shown' })
    const badge = await make('rel.Badge', { holder: { id: person.id } })
    const other = await make('rel.Person', { name: 'Without' })
    const shown = { id: badge.id, $version: 0, number: badge['number'] }
    const filter = `id in (${person.id}, ${other.id})`
    const page = await records().find('rel.Person', { fields: 'badge', filter })
    expect(page.data).toEqual([
      { id: person.id, version: 0, badge: shown },
      { id: other.id, version: 0, badge: null },
    ])
    const fetched = await records().fetch('rel.Person', person.id, { fields: ['badge'] })
    expect(fetched).toEqual({ id: person.id, version: 0, badge: shown })
    expect(await read('rel.Person', person.id)).not.toHaveProperty('badge')
  })

  test('a one-to-one moved to another record frees the first, and is taken for the second', async () => {
    const [a, b] = [await make('rel.Person', { name: 'A' }), await make('rel.Person', { name: 'B' })]
    const badge = await make('rel.Badge', { holder: { id: a.id } })
    await change('rel.Badge', badge.id, { version: 0, holder: { id: b.id } })
    const other = await make('rel.Badge', { holder: { id: a.id } })
    const taken = await expectRolledBack(() =>
      change('rel.Badge', other.id, { version: 0, holder: { id: b.id } }),
    )
    expect(taken.kind).toBe('not-unique')
    const partners = await records().find('rel.Person', {
      fields: 'badge',
      filter: `id in (${a.id}, ${b.id})`,
    })
    expect(partners.data.map(({ badge: shown }) => shown)).toMatchObject([{ id: other.id }, { id: badge.id }])
    expect(await read('rel.Person', a.id)).toMatchObject({ version: 0 })
  })

  test('a path over the inverse of a one-to-one yields null if there is no related record', async () => {
    const boss = await make('rel.Person', { name: 'Boss' })
    const worker = await make('rel.Person', { name: 'Worker', boss: { id: boss.id } })
    const found = async (condition: string) => {
      const filter = `boss = ${boss.id} and boss.badge.holder.name ${condition}`
      return (await records().find('rel.Person', { fields: [], filter })).data.map(({ id }) => id)
    }
    expect([await found("= 'Boss'"), await found('is null')]).toEqual([[], [worker.id]])
    await make('rel.Badge', { holder: { id: boss.id } })
    expect([await found("= 'Boss'"), await found('is null')]).toEqual([[worker.id], []])
  })
})
