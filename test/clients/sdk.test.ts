import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HttpClient } from '../http-client.js'
import { onEveryEngine, PASSWORD, USERNAME, type Service } from '../targets.js'
import { Sdk } from './sdk.js'
import { openShop, ORDER, PARTNER } from './shop.js'

async function openSdk({ url }: Service): Promise<Sdk> {
  const { cookie } = await HttpClient.login(url, USERNAME, PASSWORD)
  // With `Prefer: return=representation`, a delete answers the deleted record as an object.
  return new Sdk(url, (headers) => ({ ...headers, cookie, prefer: 'return=representation' }))
}

onEveryEngine((engine) => {
  let service: Service
  let sdk: Sdk

  beforeAll(async () => {
    service = await openShop(engine)
    sdk = await openSdk(service)
  })
  afterAll(() => service.close())

  test('the SDK creates records, lists a page with the total, and updates one', async () => {
    const made = [await sdk.create(PARTNER, { name: 'Ada' }), await sdk.create(PARTNER, { name: 'Bob' })]
    const { total, data } = await sdk.find(PARTNER, 0, 1)
    expect([total, data?.length]).toEqual([2, 1])
    const [ada] = made
    const changed = await sdk.update(PARTNER, ada?.id ?? 0, { version: 0, code: 'A' })
    expect(changed).toMatchObject({ version: 1, code: 'A' })
  })

  test('criteria without an operator are combined with or', async () => {
    const criteria = ['Ada', 'Bob'].map((value) => ({ fieldName: 'name', operator: '=', value }))
    const { total } = await sdk.search(PARTNER, { fields: ['name'], data: { criteria } })
    expect(total).toBe(2)
    const both = await sdk.search(PARTNER, { fields: ['name'], data: { operator: 'and', criteria } })
    expect(both.total).toBe(0)
  })

  test('a search by field values matches text in those fields', async () => {
    const { data } = await sdk.search(PARTNER, { fields: ['name'], data: { name: 'bo' } })
    expect(data?.map((each) => each['name'])).toEqual(['Bob'])
  })

  test('the SDK fetches a record with its related records', async () => {
    const { data: [ada] = [] } = await sdk.search(PARTNER, { fields: ['name'], data: { name: 'ada' } })
    const order = await sdk.create(ORDER, { reference: 'S-1', partner: ada })
    const fetched = await sdk.fetch(ORDER, order.id, {
      fields: ['reference'],
      related: { partner: ['name', 'code'] },
    })
    expect(fetched).toEqual({
      ...{ id: order.id, version: 0, reference: 'S-1' },
      partner: { id: ada?.id, version: 1, name: 'Ada', code: 'A' },
    })
  })

  test('removeAll deletes all records, or none if one of them has changed', async () => {
    const [one, two] = [
      await sdk.create(PARTNER, { name: 'One' }),
      await sdk.create(PARTNER, { name: 'Two' }),
    ]
    await sdk.update(PARTNER, two.id, { version: 0, name: 'Two, changed' })
    const stale = sdk.removeAll(
      PARTNER,
      [one, two].map(({ id, version }) => ({ id, version })),
    )
    await expect(stale).rejects.toThrow(/is at version 1, not 0/)
    const removed = await sdk.removeAll(PARTNER, [
      { id: one.id, version: 0 },
      { id: two.id, version: 1 },
    ])
    expect(removed.map(({ id }) => id)).toEqual([one.id, two.id])
  })

  test('a delete with return=representation answers an object with the id', async () => {
    const { id } = await sdk.create(PARTNER, { name: 'Short' })
    expect(await sdk.delete(PARTNER, id)).toEqual({ id })
  })

  test('an error reaches the caller of the SDK as a message', async () => {
    await expect(sdk.create(PARTNER, {})).rejects.toThrow(/name is required/)
    await expect(sdk.fetch(PARTNER, 1_000_000, {})).rejects.toThrow(/ does not exist/)
  })
})

describe('the SDK without --compat', () => {
  test('without --compat, the SDK cannot read an error: it sees only the HTTP status', async () => {
    const service = await openShop('sqlite', 'none')
    const sdk = await openSdk(service)
    await expect(sdk.create(PARTNER, {})).rejects.toThrow('HTTP 422')
    await service.close()
  })
})
