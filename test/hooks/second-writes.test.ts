// The request writes records that its hooks have written before: both take effect, as one version.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { TransactionRecords } from '../../src/model/definition/typed-records.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createRecordsHandle } from '../../src/service/hooks/records-handle.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { catchError, enter, onEveryEngine, startService, type Service } from '../targets.js'

interface Call {
  readonly id: number | undefined
  readonly records: TransactionRecords
}
type Rule = (call: Call) => Promise<unknown>

const LINE = 'again.Line'
const NOTE = 'again.Note'
const TAG = 'again.Tag'
const ORDER = 'again.Order'
let lineRemoved: Rule | undefined
let lineRemoving: Rule | undefined
let lineSaved: Rule | undefined
let orderSaved: Rule | undefined

const MODELS = [
  defineModel({
    name: ORDER,
    fields: {
      title: { type: 'string' },
      count: { type: 'integer' },
      pin: { type: 'string', secret: true },
      parent: { type: 'many-to-one', target: ORDER },
      notes: { type: 'one-to-many', target: NOTE, mappedBy: 'order', owned: true },
      tags: { type: 'many-to-many', target: TAG },
      lines: { type: 'one-to-many', target: LINE, mappedBy: 'order', owned: true },
    },
    hooks: {
      afterSave: async (call) => {
        await orderSaved?.(call)
      },
    },
  }),
  defineModel({
    name: LINE,
    fields: {
      place: { type: 'integer' },
      amount: { type: 'integer' },
      order: { type: 'many-to-one', target: ORDER },
    },
    hooks: {
      afterSave: async (call) => {
        await lineSaved?.(call)
      },
      beforeRemove: async (call) => {
        await lineRemoving?.(call)
      },
      afterRemove: async (call) => {
        await lineRemoved?.(call)
      },
    },
  }),
  defineModel({ name: NOTE, fields: { order: { type: 'many-to-one', target: ORDER } } }),
  defineModel({ name: TAG, fields: { name: { type: 'string' } } }),
].map((definition) => ({ file: 'again.ts', definition }))

onEveryEngine((engine) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine, { models: MODELS })
    records = await enter(service, 'http')
  })
  afterAll(() => service.close())
  beforeEach(() => {
    lineRemoved = lineRemoving = lineSaved = orderSaved = undefined
  })

  async function createOrder(lines: readonly object[] = []): Promise<{ id: number; lines: number[] }> {
    const { data } = await records.create(ORDER, { title: 'a', count: 0, lines })
    return { id: data.id, lines: (data['lines'] as readonly WireRecord[]).map(({ id }) => id) }
  }

  async function actionsOf(model: string, id: number): Promise<string[]> {
    return (await records.history(model, id)).data.map(
      ({ action, version, changes }) => `${action} ${version} ${Object.keys(changes).sort().join()}`,
    )
  }

  /** Gives another line its new place after this one is removed. */
  const renumber =
    (other: number): Rule =>
    async ({ records: inside }) => {
      const [line] = (await inside.of(LINE).find({ filter: { id: other } })).data
      if (line) await inside.of(LINE).update(other, { version: line.version, place: 1 })
    }

  const renumberOrder =
    (id: number): Rule =>
    async ({ records: inside }) => {
      const { version } = await inside.of(ORDER).read(id)
      await inside.of(ORDER).update(id, { version, count: 9 })
    }

  test('a removed line renumbers another one, which the client sends unchanged, or with another change', async () => {
    for (const amount of [7, 8]) {
      const { id, lines } = await createOrder([{ place: 1 }, { place: 2, amount: 7 }])
      const [, second = 0] = lines
      lineRemoved = renumber(second)
      const sent = { id: second, version: 0, place: 2, amount }
      const { data } = await records.update(ORDER, id, { version: 0, lines: [sent] })
      expect(data.version).toBe(1)
      expect(await records.read(LINE, second)).toMatchObject({ version: 1, place: 1, amount })
      expect((await actionsOf(LINE, second))[0]).toBe(`update 1 ${amount === 7 ? '' : 'amount,'}place`)
    }
  })

  test('a value that the client changes wins over that of a hook', async () => {
    const { id, lines } = await createOrder([{ place: 1 }, { place: 2 }])
    const [, second = 0] = lines
    lineRemoved = renumber(second)
    await records.update(ORDER, id, { version: 0, lines: [{ id: second, version: 0, place: 5 }] })
    expect(await records.read(LINE, second)).toMatchObject({ version: 1, place: 5 })
  })

  test('a record that somebody else has changed is still a conflict, with committed values', async () => {
    const { id, lines } = await createOrder([{ place: 1 }, { place: 2, amount: 7 }])
    const [first = 0, second = 0] = lines
    await records.update(LINE, second, { version: 0, amount: 9 })
    lineRemoved = renumber(second)
    const requests = [
      { op: 'delete', model: LINE, id: first, version: 0 },
      { op: 'update', model: LINE, id: second, version: 0, data: { amount: 8 } },
    ] as const
    const error = await catchError(records.batch(requests))
    expect(error).toMatchObject({
      kind: 'conflict',
      details: { data: { expected: 0, current: 1, theirs: { place: 2, amount: 9 } } },
    })
    expect(await records.read(ORDER, id)).toMatchObject({ title: 'a' })
  })

  test('a batch, a list of saves and a list of removes write what hooks have written before', async () => {
    const { lines } = await createOrder([{ place: 1 }, { place: 2, amount: 7 }])
    const [first = 0, second = 0] = lines
    lineSaved = renumber(second)
    await records.batch([
      { op: 'update', model: LINE, id: first, version: 0, data: { amount: 1 } },
      { op: 'update', model: LINE, id: second, version: 0, data: { amount: 8 } },
    ])
    expect(await records.read(LINE, second)).toMatchObject({ version: 1, place: 1, amount: 8 })
    lineSaved = async ({ id, records: inside }) => {
      if (id !== first) return
      const { version } = await inside.of(LINE).read(second)
      await inside.of(LINE).update(second, { version, place: 3 })
    }
    await records.save(LINE, [
      { id: first, version: 1, amount: 2 },
      { id: second, version: 1, amount: 9 },
    ])
    expect(await records.read(LINE, second)).toMatchObject({ version: 2, place: 3, amount: 9 })
    lineSaved = undefined
    lineRemoved = renumber(second)
    await records.removeAll(LINE, [
      { id: first, version: 2 },
      { id: second, version: 2 },
    ])
    expect((await records.find(LINE, { filter: `id in (${first}, ${second})` })).total).toBe(0)
    expect((await actionsOf(LINE, second)).slice(0, 2)).toEqual([
      'delete 4 amount,order,place',
      'update 3 place',
    ])
  })

  test('a mass update reaches a record that a hook of another one has written', async () => {
    const parent = await createOrder()
    const child = (await records.create(ORDER, { title: 'tree', parent: { id: parent.id } })).data
    await records.update(ORDER, parent.id, { version: 0, title: 'tree' })
    orderSaved = async ({ id, records: inside }) => {
      if (id !== child.id) return
      const { version } = await inside.of(ORDER).read(parent.id)
      await inside.of(ORDER).update(parent.id, { version, count: 1 })
    }
    const filter = { criteria: [{ fieldName: 'title', operator: '=', value: 'tree' }] }
    const before = (await records.read(ORDER, parent.id)).version
    await records.updateMass(ORDER, { data: filter, values: { title: 'wood' } })
    expect(await records.read(ORDER, child.id)).toMatchObject({ title: 'wood' })
    expect(await records.read(ORDER, parent.id)).toMatchObject({
      title: 'wood',
      count: 1,
      version: before + 1,
    })
  })

  test('a related record whose hook writes the record that it is saved with', async () => {
    const { id } = await createOrder()
    const parent = await createOrder()
    orderSaved = async ({ id: saved, records: inside }) => {
      if (saved !== parent.id) return
      const { version } = await inside.of(ORDER).read(id)
      await inside.of(ORDER).update(id, { version, count: 5 })
    }
    await records.update(ORDER, id, {
      version: 0,
      title: 'child',
      count: 0,
      parent: { id: parent.id, version: 0, title: 'parent' },
    })
    expect(await records.read(ORDER, id)).toMatchObject({
      version: 1,
      title: 'child',
      count: 5,
      parent: { id: parent.id },
    })
    expect(await records.read(ORDER, parent.id)).toMatchObject({ version: 1, title: 'parent' })
  })

  test('a record that a hook updates after its creation has not been updated yet', async () => {
    orderSaved = async ({ id = 0, records: inside }) => {
      const { version, count } = await inside.of(ORDER).read(id)
      if (count === 0) await inside.of(ORDER).update(id, { version, count: 1 })
    }
    const { id } = await createOrder()
    expect(await records.read(ORDER, id)).toMatchObject({
      version: 0,
      count: 1,
      updatedOn: null,
      updatedBy: null,
    })
  })

  test('the request cannot change and remove a record, also if a hook writes another one', async () => {
    const { id, lines } = await createOrder([{ place: 1 }, { place: 2 }])
    const [first = 0] = lines
    const other = (await createOrder()).id
    for (const rule of [undefined, renumberOrder(other)]) {
      lineSaved = rule
      const write = records.batch([
        { op: 'update', model: LINE, id: first, version: 0, data: { amount: 1 } },
        { op: 'delete', model: ORDER, id, version: 0 },
      ])
      const error = await catchError(write)
      expect([error.kind, error.message]).toEqual([
        'bad-request',
        expect.stringContaining(`${LINE} ${first} is changed and deleted in the same request`),
      ])
    }
  })

  test('a list that the client sends as it was keeps what hooks have added and removed', async () => {
    const [red, blue] = [
      (await records.create(TAG, { name: 'red' })).data.id,
      (await records.create(TAG, {})).data.id,
    ]
    for (const way of ['save', 'batch', 'program']) {
      const { id, lines } = await createOrder([{ place: 1 }])
      const { data } = await records.update(ORDER, id, { version: 0, tags: [{ id: red }], notes: [{}] })
      const [note] = data['notes'] as readonly WireRecord[]
      const other = await createOrder()
      const changeLists: Rule = async ({ records: inside }) => {
        await inside.of(NOTE).create({ order: { id } })
        await inside.of(NOTE).remove(note?.id ?? 0)
        const { version } = await inside.of(ORDER).read(id)
        await inside.of(ORDER).update(id, { version, tags: [{ id: blue }] })
      }
      const sent = { tags: [{ id: red }], notes: [{ id: note?.id }] }
      if (way === 'save') {
        lineSaved = changeLists
        const line = { id: lines[0], version: 0, amount: 5 }
        await records.update(ORDER, id, { version: 1, lines: [line], ...sent })
      } else if (way === 'program') {
        lineSaved = changeLists
        const line = { id: lines[0], version: 0, amount: 5 }
        const handle = createRecordsHandle(service.app, async () => SERVICE_PRINCIPAL)
        await handle.transaction(async (inside) =>
          inside.of(ORDER).update(id, { version: 1, lines: [line], ...sent }),
        )
      } else {
        orderSaved = async (call) => {
          if (call.id === other.id) await changeLists(call)
        }
        await records.batch([
          { op: 'update', model: ORDER, id: other.id, version: 0, data: { title: 'b' } },
          { op: 'update', model: ORDER, id, version: 1, data: { title: 'b', ...sent } },
        ])
      }
      lineSaved = orderSaved = undefined
      const stored = await records.read(ORDER, id)
      expect([stored.version, stored['tags']], way).toEqual([2, [expect.objectContaining({ id: blue })]])
      expect(
        (stored['notes'] as readonly WireRecord[]).map((each) => each.id === note?.id),
        way,
      ).toEqual([false])
    }
  })

  test('members that the client adds and removes itself win', async () => {
    const tags = [(await records.create(TAG, {})).data.id, (await records.create(TAG, {})).data.id]
    const [first = 0, second = 0] = tags
    const { id, lines } = await createOrder([{ place: 1 }])
    await records.update(ORDER, id, { version: 0, tags: [{ id: first }] })
    lineSaved = async ({ records: inside }) => {
      const { version } = await inside.of(ORDER).read(id)
      await inside.of(ORDER).update(id, { version, count: 3 })
    }
    const line = { id: lines[0], version: 0, amount: 5 }
    await records.update(ORDER, id, { version: 1, lines: [line], tags: [{ id: second }] })
    expect(await records.read(ORDER, id)).toMatchObject({ count: 3, tags: [{ id: second }] })
  })

  test('a secret that the client clears is cleared', async () => {
    const { id } = (await records.create(ORDER, { title: 'a', pin: '1234' })).data
    const other = await createOrder()
    orderSaved = async ({ id: saved, records: inside }) => {
      if (saved !== other.id) return
      const { version } = await inside.of(ORDER).read(id)
      await inside.of(ORDER).update(id, { version, count: 1 })
    }
    await records.batch([
      { op: 'update', model: ORDER, id: other.id, version: 0, data: { title: 'b' } },
      { op: 'update', model: ORDER, id, version: 0, data: { pin: null } },
    ])
    const [row] = await service.app.db.reader.all(`select "pin" from "again.Order" where "id" = ${id}`)
    expect([row?.['pin'], (await records.read(ORDER, id))['count']]).toEqual([null, 1])
  })

  test('an order whose removed lines renumber the others is removed, with a history without gaps', async () => {
    const { id, lines } = await createOrder([{ place: 1 }, { place: 2 }, { place: 3 }])
    lineRemoved = async ({ records: inside }) => {
      const left = await inside.of(LINE).find({ filter: { id: { in: lines } }, limit: 10 })
      for (const { id: line, version, ...values } of left.data)
        await inside.of(LINE).update(line, { version, place: Number(values['place']) - 1 })
    }
    await records.remove(ORDER, id)
    expect((await records.find(LINE, { filter: `id in (${lines.join()})` })).total).toBe(0)
    expect(await actionsOf(LINE, lines[2] ?? 0)).toEqual([
      'delete 2 order,place',
      'update 1 place',
      'create 0 order,place',
    ])
  })

  test('a line that a hook detaches while its order is removed stays', async () => {
    const { id, lines } = await createOrder([{ place: 1 }, { place: 2 }])
    const [first = 0, second = 0] = lines
    lineRemoved = async ({ id: removed, records: inside }) => {
      if (removed === first) await inside.of(LINE).update(second, { version: 0, order: null })
    }
    await records.remove(ORDER, id)
    expect(await records.read(LINE, second)).toMatchObject({ version: 1, order: null })
    expect((await actionsOf(LINE, second))[0]).toBe('update 1 order')
  })

  test('a record that its own hook removes with its owner is removed once', async () => {
    const { id, lines } = await createOrder([{ place: 1 }])
    lineRemoving = async ({ records: inside }) => {
      if ((await inside.of(ORDER).find({ filter: { id } })).total > 0) await inside.of(ORDER).remove(id)
    }
    await records.remove(LINE, lines[0] ?? 0)
    expect((await records.find(ORDER, { filter: `id = ${id}` })).total).toBe(0)
    expect((await actionsOf(LINE, lines[0] ?? 0)).filter((each) => each.startsWith('delete'))).toHaveLength(1)
  })

  test('the request still cannot write a record twice itself', async () => {
    const { lines } = await createOrder([{ place: 1 }, { place: 2 }])
    const [first = 0, second = 0] = lines
    lineSaved = renumber(second)
    const write = records.save(LINE, [
      { id: first, version: 0, amount: 1 },
      { id: second, version: 0, amount: 2 },
      { id: second, version: 0, amount: 3 },
    ])
    expect((await catchError(write)).kind).toBe('invalid')
  })
})
