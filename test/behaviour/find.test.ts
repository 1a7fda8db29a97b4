import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Records } from '../../src/wire.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'

const COUNT = 95

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  const ids: number[] = []

  beforeAll(async () => {
    service = await startService(engine, { settings: { maxPageSize: 50 } })
    records = await enter(service, transport)
    for (let index = 0; index < COUNT; index++) {
      ids.push(
        (await records.create('crm.Contact', { firstName: `C${index}`, email: `c${index}@example.org` })).data
          .id,
      )
    }
  })
  afterAll(() => service.close())

  test('a find returns the first 40 records by id, with list fields only and the total', async () => {
    const page = await records.find('crm.Contact')
    expect(page).toMatchObject({ offset: 0, total: COUNT })
    expect(page.data.map((record) => record.id)).toEqual(ids.slice(0, 40))
    expect(page.data[0]).toEqual({ id: ids[0], version: 0, fullName: 'C0', email: 'c0@example.org' })
  })

  test('pages of a find have no gaps and no overlaps', async () => {
    const seen: number[] = []
    for (let offset = 0; offset < COUNT; offset += 13) {
      const page = await records.find('crm.Contact', { offset, limit: 13 })
      expect(page.total).toBe(COUNT)
      seen.push(...page.data.map((record) => record.id))
    }
    expect(seen).toEqual(ids)
  })

  test('a find lowers a limit over the maximum, returns only the total for limit 0, and nothing past the end', async () => {
    expect((await records.find('crm.Contact', { limit: 10_000 })).data).toHaveLength(50)
    expect(await records.find('crm.Contact', { limit: 0 })).toMatchObject({ total: COUNT, data: [] })
    expect(await records.find('crm.Contact', { offset: COUNT })).toMatchObject({
      offset: COUNT,
      total: COUNT,
      data: [],
    })
    expect(await records.find('crm.Contact', { offset: 2 ** 53 - 1 })).toMatchObject({
      total: COUNT,
      data: [],
    })
    expect(await records.find('test.Everything')).toMatchObject({ total: 0, data: [] })
  })

  test('a find rejects an invalid offset and limit as bad-request, and names both in one message', async () => {
    for (const wrong of ['', 'x', '-1', '1.5', '1e3', ' 1', '9007199254740992', '99999999999999999999']) {
      const error = await catchError(records.find('crm.Contact', { offset: wrong, limit: wrong }))
      expect(error.kind).toBe('bad-request')
      expect(error.message).toMatch(/offset must.*limit must/)
    }
  })

  test('a field may have the name of any SQL alias or keyword that a find uses', async () => {
    const order = { total: '7.50', count: 'c', offset: 5, one: 2, last: 3, select: 's', t: 't', p: 'p' }
    const { data } = await records.create('test.Order', order)
    const { data: other } = await records.create('test.Order', { ...order, total: '3.00' })
    const page = await records.find('test.Order')
    expect(page).toMatchObject({ offset: 0, total: 2, data: [{ id: data.id, ...order }, { total: '3.00' }] })
    await records.update('test.Order', other.id, { version: 0, select: 'x' })
    await records.remove('test.Order', data.id)
    await records.remove('test.Order', other.id)
  })

  test('a find omits archived records unless it asks for them', async () => {
    const { data: kept } = await records.create('test.Note', { title: 'kept' })
    const { data: old } = await records.create('test.Note', { title: 'old', archived: true })
    expect(await records.find('test.Note')).toMatchObject({ total: 1, data: [{ id: kept.id }] })
    expect(await records.find('test.Note', { archived: true })).toMatchObject({ total: 2 })
    expect(await records.read('test.Note', old.id)).toMatchObject({ archived: true })
    await records.update('test.Note', old.id, { version: 0, archived: false })
    expect(await records.find('test.Note')).toMatchObject({ total: 2 })
    await records.remove('test.Note', old.id)
    await records.remove('test.Note', kept.id)
  })
})
