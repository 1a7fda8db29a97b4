import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onEveryEngine, PASSWORD, USERNAME, type Service } from '../targets.js'
import { Mobile, SessionExpired } from './mobile.js'
import { ClientError, openShop, ORDER, PARTNER, TAG } from './shop.js'

onEveryEngine((engine) => {
  let service: Service
  let mobile: Mobile

  beforeAll(async () => {
    service = await openShop(engine)
    mobile = new Mobile(`${service.url}/`)
    await mobile.login(USERNAME, PASSWORD)
  })
  afterAll(() => service.close())

  test('the mobile client logs in and out, and sees an expired session as SessionExpired', async () => {
    const other = new Mobile(`${service.url}/`)
    expect((await other.info()).user).toBeUndefined()
    await expect(other.find(ORDER)).rejects.toThrow(SessionExpired)
    await other.login(USERNAME, PASSWORD)
    expect((await other.info()).user).toMatchObject({ login: USERNAME, name: 'Ada' })
    await other.logout()
    expect((await other.info()).user).toBeUndefined()
    await expect(other.find(ORDER)).rejects.toThrow(SessionExpired)
    await expect(other.login(USERNAME, 'wrong')).rejects.toThrow(ClientError)
  })

  describe('an order with lines', () => {
    let id = 0
    let partner = 0

    beforeAll(async () => {
      partner = (await mobile.create(PARTNER, { name: 'Grace', code: 'G' })).id
      const tag = await mobile.create(TAG, { name: 'fragile' })
      const order = await mobile.save(ORDER, {
        ...{
          reference: 'M-1',
          status: 1,
          orderDate: '2026-02-01',
          total: '30.5',
          cid: null,
          selected: false,
        },
        partner: { id: partner },
        tags: [tag.id],
        // The client gives new records negative ids.
        lines: [{ id: -1, product: 'Ink', quantity: '3' }, { product: 'Paper' }],
      })
      id = order.id
    })

    test('the mobile client fetches selected fields and related records, with the versions needed to update them', async () => {
      const order = await mobile.fetch(ORDER, id, ['reference', 'partner.code', 'total', 'nothing'], {
        lines: ['product', 'quantity', 'nothing'],
      })
      expect(order).toEqual({
        ...{ id, version: 0, reference: 'M-1', total: '30.500' },
        partner: { id: partner, $version: 0, name: 'Grace', code: 'G' },
        lines: [
          { id: expect.any(Number) as number, version: 0, product: 'Ink', quantity: 3 },
          { id: expect.any(Number) as number, version: 0, product: 'Paper', quantity: 1 },
        ],
      })
    })

    const searches: readonly (readonly [string, Parameters<Mobile['search']>[2]])[] = [
      ['a path', [{ fieldName: 'partner.name', operator: '=', value: 'Grace' }]],
      ['a number sent as text', [{ fieldName: 'status', operator: '=', value: '1' }]],
      [
        'empty groups',
        [
          { operator: 'and', criteria: [] },
          { operator: 'or', criteria: [] },
        ],
      ],
      ['a field of a list', [{ fieldName: 'lines.product', operator: 'like', value: 'ink' }]],
      [
        'ids, dates and null',
        [
          { fieldName: 'partner.id', operator: 'in', value: [1, 2, 3] },
          { fieldName: 'orderDate', operator: 'between', value: '2026-01-01', value2: '2026-12-31' },
          { operator: 'OR', criteria: [{ fieldName: 'confirmedOn', operator: 'isNull' }] },
        ],
      ],
    ]

    test.for(searches)('the mobile client finds an order by %s', async ([, criteria]) => {
      const found = await mobile.search(ORDER, ['reference', 'partner', 'tags', 'unknown'], criteria)
      expect(found.map((order) => order['reference'])).toContain('M-1')
    })

    test('the mobile client finds an order by a domain with :__user__ and :__datetime__', async () => {
      const domain =
        'self.partner.id = :id AND self.createdBy = :__user__ AND self.createdOn <= :__datetime__'
      const found = await mobile.search(ORDER, ['reference'], [], { domain, context: { id: partner } })
      expect(found.map((order) => order['reference'])).toEqual(['M-1'])
    })

    test('the mobile client updates an order with save and with update, and reads the result back', async () => {
      const first = await mobile.read(ORDER, id)
      const second = await mobile.save(ORDER, { ...first, total: '31' })
      const third = await mobile.update(ORDER, id, { id, version: second.version, status: 2 })
      expect([second.version, third.version, third['total']]).toEqual([1, 2, '31.000'])
      expect(await mobile.read(ORDER, id)).toEqual(third)
    })

    test('an update of an order with an outdated version or without a version is rejected', async () => {
      const { version } = await mobile.read(ORDER, id)
      await mobile.save(ORDER, { id, version, orderDate: '2026-03-01' })
      await expect(mobile.save(ORDER, { id, version, orderDate: '2026-04-01' })).rejects.toThrow(/version/)
      await expect(mobile.update(ORDER, id, { orderDate: '2026-04-01' })).rejects.toThrow(/version/)
      expect((await mobile.read(ORDER, id))['orderDate']).toBe('2026-03-01')
    })

    test('a copy of an order marks the unique value and gets new lines', async () => {
      const copied = await mobile.copy(ORDER, id)
      const saved = await mobile.create(ORDER, copied)
      expect(saved).toMatchObject({ reference: 'M-1 (copy)', version: 0, total: '31.000' })
      expect((saved['lines'] as unknown[]).length).toBe(2)
      await mobile.delete(ORDER, saved.id)
    })

    test('the mobile client deletes an order without sending a version', async () => {
      const order = await mobile.create(ORDER, { reference: 'M-2', lines: null })
      await mobile.delete(ORDER, order.id)
      await expect(mobile.read(ORDER, order.id)).rejects.toThrow(/ does not exist/)
    })
  })

  test('a search of the mobile client without a limit returns all records', async () => {
    for (let index = 0; index < 60; index++) await mobile.create(TAG, { name: `Many ${index}` })
    const found = await mobile.search(
      TAG,
      ['name'],
      [{ fieldName: 'name', operator: 'like', value: 'Many%' }],
      { limit: null },
    )
    expect(found.length).toBe(60)
  })
})

describe('the mobile client without --compat', () => {
  test('without --compat, the mobile client cannot read errors: it sees only the HTTP status', async () => {
    const service = await openShop('sqlite', 'none')
    const mobile = new Mobile(`${service.url}/`)
    await mobile.login(USERNAME, PASSWORD)
    await expect(mobile.read(ORDER, 1)).rejects.toThrow('HTTP 404')
    const search = mobile.search(ORDER, ['reference', 'unknown'], [{ operator: 'and', criteria: [] }])
    await expect(search).rejects.toThrow('HTTP 400')
    await service.close()
  })
})
