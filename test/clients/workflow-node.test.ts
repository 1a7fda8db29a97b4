import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { saveRecords } from '../../src/service/records/save.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { onEveryEngine, PASSWORD, USERNAME, type Service } from '../targets.js'
import { openShop, ORDER, PARTNER, TAG } from './shop.js'
import { WorkflowNode } from './workflow-node.js'
import { createContext } from '../../src/service/context/context.js'

onEveryEngine((engine) => {
  let service: Service
  let node: WorkflowNode

  beforeAll(async () => {
    service = await openShop(engine)
    node = new WorkflowNode(service.url, USERNAME, PASSWORD)
  })
  afterAll(() => service.close())

  test('a credentials test answers 200 for valid credentials and 401 for wrong ones', async () => {
    expect(await node.testCredentials()).toBe(200)
    expect(await new WorkflowNode(service.url, USERNAME, 'not this one').testCredentials()).toBe(401)
  })

  test('the workflow node lists the models and the form metadata of their fields', async () => {
    const names = (await node.models()).map(({ fullName }) => fullName)
    expect(names).toEqual(expect.arrayContaining([ORDER, PARTNER, TAG]))
    const fields = new Map((await node.fields(ORDER)).map((field) => [field.name, field]))
    expect(fields.get('reference')).toMatchObject({ type: 'STRING', required: true, nameColumn: true })
    expect(fields.get('partner')).toMatchObject({ type: 'MANY_TO_ONE', target: PARTNER, targetName: 'name' })
    expect(fields.get('status')?.selectionList?.[1]).toMatchObject({ value: '2', title: 'Confirmed' })
    expect(fields.get('lines')?.type).toBe('ONE_TO_MANY')
  })

  test('the workflow node fills a drop-down with all records, beyond the size of one page', async () => {
    const { app } = service
    const some = Array.from({ length: 600 }, (_, index) => ({ name: `Partner ${index}` }))
    for (let round = 0; round < 2; round++)
      await saveRecords(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(PARTNER), some)
    const partner = (await node.fields(ORDER)).find(({ name }) => name === 'partner')
    if (!partner) throw new Error('there is no such field')
    expect((await node.choices(partner)).length).toBeGreaterThanOrEqual(1_200)
  })

  describe('records', () => {
    test('the workflow node creates, finds, updates and deletes records; unknown fields are ignored', async () => {
      const partner = await node.save(PARTNER, { name: 'Ada', attrs_color: 'blue' })
      const tag = await node.save(TAG, { name: 'urgent' })
      const order = await node.save(ORDER, {
        ...{ reference: 'SO-1', status: '2', total: 12.5, orderDate: '2026-01-31', confirmedOn: '' },
        partner: { id: partner.id, name: 'whatever was on the screen' },
        // The client sends one record for a list field.
        tags: { id: tag.id },
      })
      expect(order).toMatchObject({ version: 0, status: 2, total: '12.500', confirmedOn: null })
      expect(order['partner']).toEqual({ id: partner.id, $version: 0, name: 'Ada' })
      expect(order['tags']).toEqual([{ id: tag.id, $version: 0, name: 'urgent' }])
      const changed = await node.save(ORDER, { id: order.id, status: 3 })
      expect(changed).toMatchObject({ id: order.id, version: 1, status: 3, reference: 'SO-1' })
      const criteria = [{ fieldName: 'partner.name', operator: '=', value: 'Ada' }]
      const found = await node.getMany(ORDER, criteria, ['reference', 'partner.name', 'attrs_color'])
      expect(found).toEqual([{ id: order.id, version: 1, reference: 'SO-1', 'partner.name': 'Ada' }])
      await node.deleteMany(ORDER, [order.id])
      await node.delete(PARTNER, partner.id)
      expect(await node.getMany(ORDER, criteria, ['reference'])).toEqual([])
    })

    const faults: readonly (readonly [string, (node: WorkflowNode) => Promise<unknown>, RegExp])[] = [
      ['a missing value', (each) => each.save(ORDER, { status: 1 }), /reference is required/],
      ['an invalid value', (each) => each.save(ORDER, { reference: 'x', status: 9 }), /must be one of/],
      ['a missing record', (each) => each.get(ORDER, 9_999_999, ['id']), / 9999999 does not exist/],
      ['a model that is not there', (each) => each.save('an unknown model', {}), /no model/],
      [
        'an unknown field',
        (each) => each.getMany(ORDER, [{ fieldName: 'x', operator: '=', value: 1 }], []),
        /no field/,
      ],
    ]

    test.for(faults)('the workflow node reports %s with a readable message', async ([, call, message]) => {
      await expect(call(node)).rejects.toThrow(message)
    })
  })
})

describe('the workflow node without --compat', () => {
  test('without --compat, the workflow node is rejected with 401', async () => {
    const service = await openShop('sqlite', 'none')
    const node = new WorkflowNode(service.url, USERNAME, PASSWORD)
    await expect(node.models()).rejects.toThrow('HTTP 401')
    await service.close()
  })
})
