// What hooks in the transaction get, what they may do, and what they may not do.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { defineHooks } from '../../src/model/definition/extend-model.js'
import type { HooksOf, PendingSaveCall } from '../../src/model/definition/hooks.js'
import type { RecordsHandle } from '../../src/model/definition/typed-records.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createRecordsHandle } from '../../src/service/hooks/records-handle.js'
import { recordsFor } from '../../src/service/records/records.js'
import type { Records } from '../../src/wire.js'
import { changesSince } from '../log.js'
import { catchError, enter, onEveryEngine, startService, type Service } from '../targets.js'

const Customer = defineModel({
  name: 'sale.Customer',
  fields: {
    name: { type: 'string', required: true },
    limit: { type: 'integer' },
    orders: { type: 'integer' },
  },
})

type Rule = keyof HooksOf
type AnyCall = PendingSaveCall
/** The rules that a test sets, by the name of the hook. */
let rules: Partial<Record<Rule, (call: AnyCall) => unknown>> = {}
let lineRule: ((call: Pick<AnyCall, 'records'>) => Promise<unknown>) | undefined
let extensionRules: Partial<Record<Rule, (call: AnyCall) => unknown>> = {}

const run =
  (name: Rule, from: () => typeof rules = () => rules) =>
  (call: unknown): never =>
    from()[name]?.(call as AnyCall) as never

const Order = defineModel({
  name: 'sale.Order',
  fields: {
    title: { type: 'string', required: true, length: 20 },
    note: { type: 'string' },
    total: { type: 'integer', min: 0 },
    label: { type: 'string', computed: '{title}!' },
    start: { type: 'date' },
    end: { type: 'date' },
    secretCode: { type: 'string', secret: true },
    options: { type: 'json' },
    customer: { type: 'many-to-one', target: 'sale.Customer' },
    lines: { type: 'one-to-many', target: 'sale.Line', mappedBy: 'order', owned: true },
  },
  checks: [{ condition: 'end >= start', message: 'must not be before the start', field: 'end' }],
  hooks: {
    beforeSave: run('beforeSave'),
    validate: run('validate'),
    afterSave: run('afterSave'),
    beforeRemove: run('beforeRemove'),
    afterRemove: run('afterRemove'),
  },
})
const OrderExtension = defineHooks(Order, {
  beforeSave: run('beforeSave', () => extensionRules),
  validate: run('validate', () => extensionRules),
})
const Line = defineModel({
  name: 'sale.Line',
  fields: {
    product: { type: 'string' },
    amount: { type: 'integer', required: true },
    order: { type: 'many-to-one', target: 'sale.Order' },
  },
  hooks: {
    // The total of the lines, on the order that owns them.
    afterSave: async ({ after, records }) => addToTotal(records, after.order?.id),
    afterRemove: async ({ before, records }) => addToTotal(records, before.order?.id),
    validate: async ({ after, records }) => {
      await lineRule?.({ records })
      return after.product === 'bad' ? { product: 'is not for sale' } : undefined
    },
  },
})

async function addToTotal(records: AnyCall['records'], order: number | undefined): Promise<void> {
  const [found] = (await records.of(Order).find({ filter: { id: order ?? 0 }, fields: ['total'] })).data
  if (!found) return
  const { data } = await records
    .of(Line)
    .find({ filter: { order: found.id }, fields: ['amount'], limit: 100 })
  const total = data.reduce((sum, { amount }) => sum + amount, 0)
  if (total !== found.total) await records.of(Order).update(found.id, { version: found.version, total })
}

const MODELS = [Customer, Order, Line, OrderExtension].map((definition) => ({ file: 'sale.ts', definition }))

onEveryEngine((engine) => {
  let service: Service
  let records: Records
  let outer: RecordsHandle

  beforeAll(async () => {
    service = await startService(engine, { models: MODELS, expects: ['internal'] })
    records = await enter(service, 'http')
    outer = createRecordsHandle(service.app, async () => SERVICE_PRINCIPAL)
  })
  afterAll(() => service.close())
  beforeEach(() => {
    rules = {}
    lineRule = undefined
    extensionRules = {}
  })

  async function countChanges(): Promise<number> {
    return (await changesSince(service.app.db.reader, 0, 100_000)).length
  }

  /** Checks that the write fails and leaves nothing behind. */
  async function expectRefused(write: () => Promise<unknown>): Promise<VersoError> {
    const before = await countChanges()
    const error = await catchError(write())
    expect(await countChanges()).toBe(before)
    return error
  }

  async function createOrder(values: object = {}): Promise<{ id: number; version: number }> {
    return (await records.create('sale.Order', { title: 'a', ...values })).data
  }

  describe('a call', () => {
    test('has the record before and after, what changes, the user and the attempt', async () => {
      const calls: AnyCall[] = []
      const { id } = await createOrder({ note: 'old' })
      rules = { beforeSave: (call) => void calls.push(call), afterSave: (call) => void calls.push(call) }
      await records.update('sale.Order', id, { version: 0, note: 'new', secretCode: 'x' })
      const [pending, saved] = calls
      expect(pending).toMatchObject({
        model: 'sale.Order',
        id,
        attempt: 1,
        before: { note: 'old', title: 'a', label: 'a!' },
        after: { note: 'new', title: 'a', label: 'a!', customer: null, lines: [] },
        user: { username: 'ada', isAdmin: true },
      })
      expect([...(pending?.changed ?? [])]).toEqual(['note', 'secretCode'])
      expect(saved?.after).toMatchObject({ note: 'new' })
      expect(pending?.after).not.toHaveProperty('secretCode')
    })

    test('of a create has no id, no record before, and all values', async () => {
      const calls: AnyCall[] = []
      rules = { beforeSave: (call) => void calls.push(call) }
      await createOrder({ lines: [{ amount: 1 }] })
      expect(calls[0]).toMatchObject({
        id: undefined,
        before: undefined,
        after: { title: 'a', note: null, lines: [] },
      })
    })

    test('cannot be changed: its records are frozen, also inside JSON values', async () => {
      let frozen: unknown
      rules = {
        beforeSave: ({ after }) => {
          const { options } = after as { options: { deep: number[] } }
          frozen = [after, options, options.deep].map((each) => Object.isFrozen(each))
        },
      }
      await createOrder({ options: { deep: [1] } })
      expect(frozen).toEqual([true, true, true])
    })

    test('sees the lines of its record after the save', async () => {
      let lines: unknown
      rules = { afterSave: ({ after }) => void (lines = after['lines']) }
      await createOrder({ lines: [{ amount: 1 }, { amount: 2 }] })
      expect(lines).toEqual([{ id: expect.any(Number) as number }, { id: expect.any(Number) as number }])
    })
  })

  describe('beforeSave', () => {
    test('sets the values that it returns; the next one sees them, and validate sees the result', async () => {
      const seen: unknown[] = []
      rules = {
        beforeSave: ({ after }) => ({ note: `${String(after['title'])}1` }),
        validate: ({ after }) => void seen.push(after['note']),
      }
      extensionRules = {
        beforeSave: ({ after }) => {
          seen.push(after['note'])
          return { note: 'second' }
        },
      }
      const { id } = await createOrder()
      expect(await records.read('sale.Order', id)).toMatchObject({ note: 'second', version: 0 })
      expect(seen).toEqual(['a1', 'second'])
    })

    test('sets values that the user may not write', async () => {
      const limited = await limitedRecords()
      rules = { beforeSave: () => ({ note: 'by the rule' }) }
      await expectRefused(() => limited.create('sale.Order', { title: 'x', note: 'by the user' }))
      const { data } = await limited.create('sale.Order', { title: 'x' })
      expect(await records.read('sale.Order', data.id)).toMatchObject({ note: 'by the rule' })
    })

    test('gets an error by field for a value that the field does not take', async () => {
      rules = { beforeSave: () => ({ title: 'x'.repeat(21), total: -1 }) }
      const error = await expectRefused(() => createOrder())
      expect(error).toMatchObject({
        kind: 'invalid',
        details: { errors: { title: expect.any(String) as string, total: expect.any(String) as string } },
      })
    })

    test('a reference that it sets must exist', async () => {
      rules = { beforeSave: () => ({ customer: { id: 987_654 } }) }
      expect(await expectRefused(() => createOrder())).toMatchObject({ kind: 'invalid' })
    })
  })

  describe('validate', () => {
    test('its messages come with all others: of the data, of checks, of extensions and of lines', async () => {
      rules = { validate: () => ({ note: 'is forbidden' }) }
      extensionRules = { validate: () => ({ title: 'is boring' }) }
      const data = { start: '2026-02-01', end: '2026-01-01', lines: [{ amount: 1, product: 'bad' }] }
      const error = await expectRefused(() => createOrder(data))
      const expected = {
        note: 'is forbidden',
        title: 'is boring',
        end: 'must not be before the start',
        'lines[0].product': 'is not for sale',
      }
      expect(error).toMatchObject({ kind: 'invalid', details: { errors: expected } })
      const wrong = await expectRefused(() =>
        records.create('sale.Order', { ...data, total: 'many', lines: [{ product: 'bad' }] }),
      )
      expect(Object.keys(wrong.details.errors ?? {}).sort()).toEqual(
        ['end', 'lines[0].amount', 'lines[0].product', 'note', 'title', 'total'].sort(),
      )
    })

    test('its messages for lines come also with a reference that does not exist', async () => {
      rules = { validate: () => ({ note: 'is forbidden' }) }
      const lines = [{ amount: 1, product: 'bad' }, { amount: 2 }]
      const data = { customer: { id: 987_654 }, lines }
      const errors = ['customer', 'lines[0].product', 'note']
      const error = await expectRefused(() => createOrder(data))
      expect(Object.keys(error.details.errors ?? {}).sort()).toEqual(errors)
      const list = await expectRefused(() =>
        records.save('sale.Order', [
          { title: 'a', ...data },
          { title: 'b', lines },
        ]),
      )
      expect(Object.keys(list.details.errors ?? {}).sort()).toEqual(
        ['customer', 'lines[0].product', 'note', 'note', 'lines[0].product']
          .map((name, index) => `records[${index < 3 ? 0 : 1}].${name}`)
          .sort(),
      )
      const batch = await expectRefused(() =>
        records.batch([
          { op: 'create', model: 'sale.Customer', data: { name: 'c' } },
          { op: 'create', model: 'sale.Order', data: { title: 'a', ...data } },
        ]),
      )
      expect(batch.details.data).toMatchObject({ index: 1 })
      expect(Object.keys(batch.details.errors ?? {}).sort()).toEqual(
        errors.map((name) => `requests[1].${name}`).sort(),
      )
    })

    test('and beforeSave do not hide that a record refers to a missing one', async () => {
      let calls = 0
      rules = {
        validate: async ({ after, records: inside }) => {
          calls++
          const { customer } = after as { customer: { id: number } | null }
          if (customer) await inside.of(Customer).lock(customer.id)
        },
      }
      const missing = await expectRefused(() => createOrder({ customer: { id: 987_654 } }))
      expect([missing.kind, missing.details.errors]).toEqual([
        'invalid',
        { customer: 'refers to sale.Customer 987654, which does not exist' },
      ])
      const { id } = await createOrder()
      const update = await expectRefused(() =>
        records.update('sale.Order', id, { version: 0, customer: { id: 987_654 } }),
      )
      expect(update.details.errors).toEqual(missing.details.errors)
      expect(calls).toBeGreaterThan(0)
    })

    test('checks the record as it will be after a merge', async () => {
      const { id } = await createOrder({ start: '2026-01-01', end: '2026-01-31' })
      await records.update('sale.Order', id, { version: 0, start: '2026-01-20' })
      const late = await expectRefused(() =>
        records.update('sale.Order', id, { version: 0, end: '2026-01-10' }, { merge: 'fields' }),
      )
      expect(late.details.errors).toEqual({ end: 'must not be before the start' })
      await records.update('sale.Order', id, { version: 0, end: '2026-01-25' }, { merge: 'fields' })
    })

    test('after an error, the other records are checked, and no afterSave runs', async () => {
      let calls = 0
      rules = {
        validate: () => ({ note: 'is forbidden' }),
        afterSave: () => {
          calls++
        },
      }
      const lines = [{ amount: 1, product: 'bad' }, { amount: 2 }, { amount: 3, product: 'bad' }]
      const error = await expectRefused(() => createOrder({ lines }))
      expect(Object.keys(error.details.errors ?? {}).sort()).toEqual([
        'lines[0].product',
        'lines[2].product',
        'note',
      ])
      expect(calls).toBe(0)
    })

    test('an empty value passes a check', async () => {
      await createOrder({ start: '2026-01-01' })
    })
  })

  describe('records of a hook', () => {
    test('read what the transaction has written, and count it', async () => {
      const totals: unknown[] = []
      rules = {
        afterSave: async ({ records: inside }) => {
          const { data, total } = await inside.of(Customer).find({ filter: { name: 'inside' } })
          totals.push(total, data.length)
          const created = await inside.of(Customer).create({ name: 'inside' })
          totals.push((await inside.of(Customer).find({ filter: { name: 'inside' } })).total)
          totals.push((await inside.of(Customer).read(created.id)).name)
          await inside.of(Customer).remove(created.id)
        },
      }
      await createOrder()
      expect(totals).toEqual([0, 0, 1, 'inside'])
      expect((await records.find('sale.Customer', { filter: "name = 'inside'" })).total).toBe(0)
    })

    test('several writes of one record in a transaction are one version and one Change', async () => {
      const before = await countChanges()
      const { data } = await records.create('sale.Order', {
        title: 'a',
        lines: [{ amount: 2 }, { amount: 3 }],
      })
      expect(data).toMatchObject({ version: 0, total: 5 })
      expect(await countChanges()).toBe(before + 3)
      const lines = data['lines'] as readonly { id: number }[]
      const changed = await records.update('sale.Order', data.id, {
        version: 0,
        note: 'n',
        lines: [{ id: lines[0]?.id, version: 0, amount: 10 }, { amount: 1 }],
      })
      expect(changed.data).toMatchObject({ version: 1, total: 11, note: 'n' })
      const [change] = (await records.history('sale.Order', data.id)).data
      expect(change).toMatchObject({ version: 1, changes: { total: { before: 5, after: 11 } } })
    })

    test('a line that is written by itself changes the total of its order, with one version', async () => {
      const order = await createOrder({ lines: [{ amount: 2 }] })
      const { data } = await records.create('sale.Line', { amount: 4, order: { id: order.id } })
      expect(await records.read('sale.Order', order.id)).toMatchObject({ version: 1, total: 6 })
      await records.remove('sale.Line', data.id)
      expect(await records.read('sale.Order', order.id)).toMatchObject({ version: 2, total: 2 })
      await records.remove('sale.Order', order.id)
    })

    test('have the permissions of the user; asSystem has all, and keeps the author', async () => {
      const limited = await limitedRecords()
      rules = {
        afterSave: async ({ records: inside }) => {
          await inside.of(Customer).create({ name: 'c' })
        },
      }
      expect(await expectRefused(() => limited.create('sale.Order', { title: 'x' }))).toMatchObject({
        kind: 'unknown-model',
      })
      rules = {
        afterSave: async ({ records: inside }) => {
          await inside.asSystem().of(Customer).create({ name: 'by the system' })
        },
      }
      await limited.create('sale.Order', { title: 'x' })
      const { data } = await records.find('sale.Customer', {
        filter: "name = 'by the system'",
        fields: 'createdBy',
      })
      expect(data[0]).toMatchObject({ createdBy: { name: 'Limited' } })
    })

    test('an error of a write refuses the request even if the hook catches it; that of a read does not', async () => {
      rules = {
        afterSave: async ({ records: inside }) => {
          await inside
            .of(Customer)
            .read(999_999)
            .catch(() => undefined)
        },
      }
      await createOrder()
      rules = {
        afterSave: async ({ records: inside }) => {
          await inside
            .of('sale.Customer')
            .create({})
            .catch(() => undefined)
        },
      }
      expect(await expectRefused(() => createOrder())).toMatchObject({ kind: 'invalid' })
    })

    test('lock keeps other transactions from changing the record', async () => {
      const { data } = await records.create('sale.Customer', { name: 'locked', orders: 0 })
      rules = {
        afterSave: async ({ records: inside }) => {
          const { version, orders } = await inside.of(Customer).lock(data.id)
          await inside.of(Customer).update(data.id, { version, orders: (orders ?? 0) + 1 })
        },
      }
      await Promise.all(Array.from({ length: 10 }, () => createOrder()))
      expect(await records.read('sale.Customer', data.id)).toMatchObject({ orders: 10, version: 10 })
    })

    test('calls at the same time run one after the other', async () => {
      rules = {
        afterSave: async ({ records: inside }) => {
          await Promise.all(['p', 'q', 'r'].map((name) => inside.of(Customer).create({ name })))
        },
      }
      const before = await countChanges()
      await createOrder()
      expect(await countChanges()).toBe(before + 4)
    })
  })

  test('a hook may change and remove lines of the order that is removed', async () => {
    const { data } = await records.create('sale.Order', {
      title: 'a',
      lines: [{ amount: 1 }, { amount: 2 }],
    })
    const [first, second] = data['lines'] as readonly { id: number }[]
    rules = {
      beforeRemove: async ({ records: inside }) => {
        await inside.of(Line).update(first?.id ?? 0, { version: 0, product: 'last words' })
        await inside.of(Line).remove(second?.id ?? 0)
      },
    }
    await records.remove('sale.Order', data.id)
    expect((await records.find('sale.Line', { filter: `id in (${first?.id}, ${second?.id})` })).total).toBe(0)
    const history = (await records.history('sale.Line', first?.id ?? 0)).data
    expect(history.map(({ action, version }) => `${action} ${version}`)).toEqual([
      'delete 2',
      'update 1',
      'create 0',
    ])
  })

  test('errors of a record that a hook writes name its model', async () => {
    rules = {
      afterSave: async ({ records: inside }) => {
        await inside.of(Line).create({ amount: 1, product: 'bad' })
      },
    }
    const error = await expectRefused(() => createOrder())
    expect(error).toMatchObject({ kind: 'invalid' })
    expect(error.message).toContain('sale.Line was not written: product is not for sale')
  })

  describe('a hook is refused', () => {
    /** The message that a program gets which calls the service directly. */
    async function messageOf(write: () => Promise<unknown>): Promise<string> {
      const before = await countChanges()
      const error = await write().then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(await countChanges()).toBe(before)
      if (!(error instanceof Error)) throw new Error('the write was not refused')
      return error.cause instanceof Error ? error.cause.message : error.message
    }
    const create = () => outer.of('sale.Order').create({ title: 'x' })

    test('if it uses records of outside: at once, with the name of the right ones', async () => {
      for (const name of ['beforeSave', 'validate', 'afterSave'] as const) {
        rules = { [name]: async () => outer.of(Customer).find() }
        expect(await messageOf(create)).toContain('must use the records that it gets')
        rules = { [name]: async () => outer.transaction(async () => undefined) }
        expect(await messageOf(create)).toContain('must use the records that it gets')
      }
    })

    test('if it returns before its calls have ended', async () => {
      rules = { afterSave: ({ records: inside }) => void inside.of(Customer).create({ name: 'c' }) }
      expect(await messageOf(create)).toContain('await all of them')
    })

    test('if it uses its records after it has ended', async () => {
      let late: (() => Promise<unknown>) | undefined
      rules = { afterSave: ({ records: inside }) => void (late = () => inside.of(Customer).find()) }
      await create()
      await expect(late?.()).rejects.toThrow('has ended')
    })

    test('if it writes the record that is about to be saved', async () => {
      const { id } = await createOrder()
      rules = {
        beforeSave: async ({ records: inside }) =>
          inside.of('sale.Order').update(id, { version: 0, note: 'x' }),
      }
      expect(await messageOf(() => outer.of('sale.Order').update(id, { version: 0, title: 'y' }))).toContain(
        'return its values from beforeSave',
      )
    })

    test('if it writes the record that is about to be saved inside another one', async () => {
      const { id } = await createOrder({ lines: [{ amount: 1 }] })
      const [line] = (await records.find('sale.Line', { filter: `order.id = ${id}` })).data
      rules = {
        validate: async ({ records: inside }) => {
          await inside
            .of('sale.Line')
            .update(line?.id ?? 0, { version: line?.version ?? 0, order: { id, version: 1, note: 'x' } })
        },
      }
      const { version } = await records.read('sale.Order', id)
      expect(await messageOf(() => outer.of('sale.Order').update(id, { version, title: 'y' }))).toContain(
        `sale.Order ${id} is about to be written by this request`,
      )
    })

    test('if it removes the owner of the record that is about to be saved, and this record with it', async () => {
      const { id } = await createOrder({ lines: [{ amount: 1 }] })
      const [line] = (await records.find('sale.Line', { filter: `order.id = ${id}` })).data
      lineRule = ({ records: inside }) => inside.of('sale.Order').remove(id)
      const write = () =>
        outer.of('sale.Line').update(line?.id ?? 0, { version: line?.version ?? 0, amount: 2 })
      expect(await messageOf(write)).toContain(`sale.Line ${line?.id} is about to be written by this request`)
    })

    test('if hooks call each other more than 8 levels deep, with the chain of names', async () => {
      rules = {
        afterSave: async ({ records: inside }) => {
          await inside.of('sale.Order').create({ title: 'x' })
        },
      }
      const error = await expectRefused(() => createOrder())
      expect(error.kind).toBe('hook-failed')
      expect(error.message).toContain(
        `${Array(8).fill('sale.Order.afterSave').join(' → ')} → sale.Order.beforeSave`,
      )
    })

    test('if it waits for something other than its records, long before its time limit', async () => {
      rules = { beforeSave: () => new Promise(() => undefined) }
      const error = await expectRefused(() => createOrder())
      expect(error).toMatchObject({ kind: 'hook-failed' })
      expect(error.message).toContain('waited more than 50 ms for something other than its records')
    })

    test('if it works for more than its time limit', async () => {
      const endMs = performance.now() + 1_500
      rules = {
        beforeSave: async ({ records: inside }) => {
          while (performance.now() < endMs) {
            await inside.of(Customer).find()
            await sleep(5)
          }
        },
      }
      const error = await expectRefused(() => createOrder())
      expect(error.message).toContain('did not finish within 1000 ms')
    })

    test('if it computes for more than its time limit, although no timer runs meanwhile', async () => {
      rules = {
        validate: () => {
          const endMs = performance.now() + 1_100
          while (performance.now() < endMs);
        },
      }
      const error = await expectRefused(() => createOrder())
      expect(error.kind).toBe('hook-failed')
      expect(error.message).toContain('sale.Order.validate did not finish within 1000 ms')
      rules = {
        validate: async ({ records: inside }) => {
          await inside.of(Customer).find({ limit: 1 })
          // Other processes may use the processor meanwhile.
          const start = process.cpuUsage()
          while (process.cpuUsage(start).user < 1_300_000);
        },
      }
      const late = await expectRefused(() => createOrder())
      expect(late.message).toContain('sale.Order.validate did not finish within 1000 ms')
    })

    test('if beforeSave returns a value for a field that does not exist', async () => {
      rules = { beforeSave: () => ({ titel: 'x' }) }
      expect(await messageOf(create)).toBe(
        'sale.Order.beforeSave must return values for fields of the model, not for "titel" (did you mean "title"?)',
      )
    })

    test('if one of its calls is malformed: 500, because the client has made no mistake', async () => {
      const calls: readonly ((call: AnyCall) => Promise<unknown>)[] = [
        ({ records: inside }) => inside.of(Customer).find({ where: 'x' } as never),
        ({ records: inside }) => inside.of(Customer).find({ filter: 'nmae = 1' }),
        ({ records: inside }) => inside.of(Customer).update(1, { name: 'x' } as never),
        ({ records: inside }) =>
          inside
            .asSystem()
            .of(Customer)
            .update(1, { name: 'x' } as never),
      ]
      for (const afterSave of calls) {
        rules = { afterSave }
        await expect(createOrder()).rejects.toMatchObject({ kind: 'internal' })
        const error: unknown = await outer
          .of(Order)
          .create({ title: 'x' })
          .catch((thrown: unknown) => thrown)
        expect(error).toMatchObject({
          message: 'sale.Order.afterSave failed',
          cause: { kind: 'bad-request' },
        })
      }
    })

    test('a bad-request that a hook throws itself reaches the client, also through the call of another hook', async () => {
      rules = {
        afterSave: async ({ after, records: inside }) => {
          if (after['title'] === 'inner') throw new VersoError('bad-request', 'its own words')
          await inside.of('sale.Order').create({ title: 'inner' })
        },
      }
      expect(await expectRefused(() => createOrder())).toMatchObject({
        kind: 'bad-request',
        message: 'its own words',
      })
    })

    test('if it throws anything else: 500, and the answer does not contain the text', async () => {
      rules = {
        afterSave: () => {
          throw new TypeError('internal detail')
        },
      }
      const before = await countChanges()
      await expect(records.create('sale.Order', { title: 'x' })).rejects.not.toThrow('internal detail')
      expect(await countChanges()).toBe(before)
    })
  })

  async function limitedRecords(): Promise<Records> {
    const username = `limited${Math.random()}`.replace('.', '')
    const id = await addUser(service.app, {
      username,
      name: 'Limited',
      password: 'red kite over hills',
      roles: [],
    })
    const { data: role } = await records.create('verso.auth.Role', { name: username })
    const grant = {
      role: { id: role.id },
      model: 'sale.Order',
      canRead: true,
      canCreate: true,
      canUpdate: true,
    }
    await records.create('verso.auth.Permission', { ...grant, writable: ['title'] })
    const { version } = await records.read('verso.auth.User', id)
    await records.update('verso.auth.User', id, { version, roles: [{ id: role.id }] })
    return recordsFor(service.app, { id, version, username, name: 'Limited' })
  }

  test('a hook runs again when its transaction is retried, and sees the number of the attempt', async () => {
    const attempts: number[] = []
    const ids = [await createCustomer(), await createCustomer()]
    let meeting = new Meeting(2)
    rules = {
      afterSave: async ({ after, attempt, records: inside }) => {
        attempts.push(attempt)
        if (after['note'] === 'fails') throw new VersoError('forbidden', 'refused after it has written')
        if (engine === 'sqlite' || attempt > 1) return
        // Two transactions lock two records in opposite orders: the database ends one of them.
        const [first = 0, second = 0] = after['note'] === 'forward' ? ids : [...ids].reverse()
        await inside.of(Customer).lock(first)
        await meeting.arrive()
        await inside.of(Customer).lock(second)
      },
    }
    // On SQLite concurrent writes share a transaction; one that fails makes the others run again.
    const notes = engine === 'sqlite' ? ['fails', 'goes on'] : ['forward', 'backward']
    // A hook that waits too long for the other one is refused, which may happen on a busy machine.
    for (let round = 0; round < 20 && !attempts.includes(2); round++) {
      meeting = new Meeting(2)
      await Promise.allSettled(notes.map((note) => createOrder({ note })))
    }
    expect(Math.max(...attempts)).toBe(2)
  })

  async function createCustomer(): Promise<number> {
    return (await records.create('sale.Customer', { name: 'c' })).data.id
  }
})

/** Resolves when all have arrived. */
class Meeting {
  readonly #met: Promise<void>
  #meet: () => void = () => undefined

  constructor(private missing: number) {
    this.#met = new Promise((resolve) => {
      this.#meet = resolve
    })
  }

  async arrive(): Promise<void> {
    if (--this.missing === 0) this.#meet()
    return this.#met
  }
}
