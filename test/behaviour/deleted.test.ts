// Deleted records of a model are found by the Changes that deleted them, newest first.
import { expect, test } from 'vitest'
import { purgeHistory } from '../../src/service/maintenance/purge.js'
import { LOG_TABLE } from '../../src/store/sql/log-insert.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records } from '../../src/wire.js'
import { findingEveryDelete } from '../mutants/history.js'
import { catchError, enter, onEveryTarget, preparedLocation, startService } from '../targets.js'
import { useRelatedService } from './related-service.js'

const CONTACT = 'crm.Contact'
const CIRCLE = 'rel.Circle'

onEveryTarget((engine, transport) => {
  const { service, records, make, change } = useRelatedService(engine, transport)

  async function deleteNew(model: string, data: object): Promise<number> {
    const { id } = await make(model, data)
    await records().remove(model, id)
    return id
  }

  async function findIds(model: string, query: object): Promise<readonly number[]> {
    return (await records().deleted(model, query)).data.map(({ id }) => id)
  }

  test('deleted records are found newest first, by the Changes that their histories show', async () => {
    const kept = await make(CIRCLE, { name: 'kept' })
    const first = await make(CIRCLE, { name: 'first' })
    const second = await make(CIRCLE, { name: 'second' })
    await change(CIRCLE, second.id, { version: 0, name: 'second, changed' })
    await records().remove(CIRCLE, second.id)
    await records().remove(CIRCLE, first.id)
    const { data, next } = await records().deleted(CIRCLE)
    expect(next).toBeUndefined()
    expect(data.map(({ id, version, action }) => [id, version, action])).toEqual([
      [first.id, 1, 'delete'],
      [second.id, 2, 'delete'],
    ])
    expect(data[1]?.changes).toEqual({ name: { before: 'second, changed', after: null } })
    for (const found of data)
      expect((await records().history(CIRCLE, found.id, { limit: 1 })).data).toEqual([found])
    expect(data.map(({ id }) => id)).not.toContain(kept.id)
  })

  test('a deleted record can be read at its last version, restored, and is then no longer found', async () => {
    const id = await deleteNew(CONTACT, { lastName: 'Restored' })
    const [found] = (await records().deleted(CONTACT, { limit: 1 })).data
    const version = found?.version ?? NaN
    expect(found?.id).toBe(id)
    expect((await records().readAt(CONTACT, id, version - 1))['lastName']).toBe('Restored')
    await records().revert(CONTACT, id, { version, to: version - 1 })
    expect(await findIds(CONTACT, { q: 'restored' })).toEqual([])
  })

  test('a record that was deleted twice is found once, by its newest delete', async () => {
    expect(await findTwiceDeleted(records())).toEqual([['delete', 3]])
  })

  test('the mutant that finds every delete is caught', async () => {
    const location = await preparedLocation(engine)
    const database = await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 })
    const mutant = await startService(engine, { location, database: findingEveryDelete(database) })
    expect(await findTwiceDeleted(await enter(mutant, transport))).toEqual([
      ['delete', 3],
      ['delete', 1],
    ])
    await mutant.close()
    location.remove()
  })

  test('pages of deleted records have each record once, also while others are deleted', async () => {
    const ids: number[] = []
    for (let turn = 0; turn < 5; turn++) ids.unshift(await deleteNew(CONTACT, { lastName: `Paged ${turn}` }))
    const found: number[][] = []
    let before: number | undefined
    do {
      const page = await records().deleted(CONTACT, { q: 'paged', limit: 2, before })
      found.push(page.data.map(({ id }) => id))
      expect([undefined, page.data.at(-1)?.seq]).toContain(page.next)
      await deleteNew(CONTACT, { lastName: 'Paged later' })
      before = page.next
    } while (before !== undefined)
    expect(found).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)])
    expect(await records().deleted(CONTACT, { before: 0 })).toEqual({ data: [] })
    const all = await records().deleted(CONTACT, { q: 'paged', limit: 8 })
    expect([all.data.length, all.next]).toEqual([8, undefined])
  })

  test('q finds deleted records whose list fields contain all words, without case and accents', async () => {
    const one = await deleteNew(CONTACT, { firstName: 'Zoë', lastName: 'Øster%gård', email: 'Z@Example.org' })
    const two = await deleteNew(CONTACT, { firstName: 'Zoe', lastName: 'Other', notes: 'ostergard' })
    const found = async (q: string) => findIds(CONTACT, { q })
    expect(await found('zoe')).toEqual([two, one])
    expect(await found('ZOE  oster')).toEqual([one])
    expect(await found('example zoë gård')).toEqual([one])
    expect(await found('r%g')).toEqual([one])
    expect(await found('r_g')).toEqual([])
    expect(await found('zoe missing')).toEqual([])
    // A find of the restored records has the same result.
    for (const id of [one, two]) await records().revert(CONTACT, id, { version: 1, to: 0 })
    for (const [q, ids] of [
      ['ZOE  oster', [one]],
      ['zoe', [one, two]],
      ['r%g', [one]],
      ['r_g', []],
    ] as const)
      expect((await records().find(CONTACT, { q })).data.map(({ id }) => id)).toEqual(ids)
  })

  test('a deleted record whose values were purged is found without values, and not by q', async () => {
    const id = await deleteNew('rel.Badge', {})
    await purgeHistory(service().app, service().app.catalog.get('rel.Badge'), id)
    const [found] = (await records().deleted('rel.Badge')).data
    expect(found).toMatchObject({ id, action: 'delete', purged: true, changes: {} })
    expect(await findIds('rel.Badge', { q: 'B-' })).toEqual([])
  })

  test('deleted members of owned lists are found in their own model', async () => {
    const { id } = await make('rel.Company', { name: 'Owner', addresses: [{ city: 'Lund' }] })
    await records().remove('rel.Company', id)
    const [member] = (await records().deleted('rel.Address', { q: 'lund' })).data
    expect(member?.changes['company']).toEqual({ before: { id }, after: null })
  })

  test('a request examines at most 2,000 deletes, and the next one continues', async () => {
    const id = await deleteNew('test.Note', { title: 'needle' })
    await service().app.db.transaction((tx) =>
      tx.run(
        `insert into ${LOG_TABLE} (model, record, version, action, at_ms, changes) ` +
          `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 2500) ` +
          `select 'test.Note', 1000000 + n, 1, 'delete', 0, '{"title":{"before":"straw","after":null}}' from numbers`,
      ),
    )
    const first = await records().deleted('test.Note', { q: 'needle' })
    expect([first.data, typeof first.next]).toEqual([[], 'number'])
    const second = await records().deleted('test.Note', { q: 'needle', before: first.next })
    expect([second.data.map((found) => found.id), second.next]).toEqual([[id], undefined])
    const page = await records().deleted('test.Note', { limit: 5_000 })
    expect([page.data.length, page.next]).toEqual([1_000, page.data.at(-1)?.seq])
  })

  test('a find of deleted records with invalid parameters is rejected as bad-request', async () => {
    const messageOf = async (query: object) => {
      const error = await catchError(records().deleted(CONTACT, query))
      expect(error.kind).toBe('bad-request')
      return error.message
    }
    expect(await messageOf({ limit: 0 })).toBe('limit must be at least 1')
    expect(await messageOf({ before: 'x' })).toMatch(/^before must be a whole number from 0/)
    expect(await messageOf({ q: 'x'.repeat(101) })).toMatch(/^q must be a single text/)
    expect(await messageOf({ q: 'a b c d e f g h i' })).toBe('q must have at most 8 words')
    expect((await catchError(records().deleted('rel.Nothing'))).kind).toBe('unknown-model')
  })
})

/** Deletes a record, restores it and deletes it again. */
async function findTwiceDeleted(records: Records): Promise<unknown> {
  const { id } = (await records.create(CONTACT, { lastName: 'Twice' })).data
  await records.remove(CONTACT, id)
  await records.revert(CONTACT, id, { version: 1, to: 0 })
  await records.remove(CONTACT, id)
  const { data } = await records.deleted(CONTACT, { q: 'twice' })
  return data.map(({ action, version }) => [action, version])
}
