import { describe, expect, test } from 'vitest'
import { describeStep } from '../../src/store/schema/plan.js'
import { models } from '../models.js'
import { enter, onEngineOfTier, catchError, startService } from '../targets.js'
import { MODEL, source, text, useLead } from './lead-fixture.js'

onEngineOfTier((engine) => {
  const { location, plan, withModels } = useLead(engine)

  test('an unchanged model plans no steps', async () => {
    await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
    const { steps, errors, notes } = await plan({ a: text })
    expect({ steps, faults: errors, notes }).toEqual({ steps: [], faults: [], notes: [] })
  })

  describe('schema growth', () => {
    test('a new field gets its default in stored records, whose versions stay', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const fields = {
        a: text,
        b: { type: 'integer', default: 7 },
        c: { type: 'decimal', default: '1.5' },
        d: text,
      }
      const record = await withModels(fields, (lead) => lead.read(MODEL, 1))
      expect(record).toMatchObject({ version: 0, a: 'x', b: 7, c: '1.50', d: null })
    })

    test('the plan says that stored records have no value of a new required field without a default', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const fields = { a: text, b: { ...text, required: true }, c: { ...text, required: true, default: 'c' } }
      const { steps } = await plan(fields)
      expect(steps.map(describeStep)).toEqual([
        `+ ${MODEL}.b: new column (string); required, but existing records have no value`,
        `+ ${MODEL}.c: new column (string)`,
      ])
      expect(await withModels(fields, (lead) => lead.read(MODEL, 1))).toMatchObject({ b: null, c: 'c' })
    })

    test('a new computed field is computed for stored records', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const fields = { a: text, twice: { type: 'string', computed: '{a}-{a}' }, b: text }
      expect(await withModels(fields, (lead) => lead.read(MODEL, 1))).toMatchObject({
        version: 0,
        twice: 'x-x',
        b: null,
      })
    })

    test('a renamed field keeps its values, its history and its index', async () => {
      await withModels({ a: { ...text, unique: true } }, async (lead) => {
        await lead.create(MODEL, { a: 'x' })
        await lead.update(MODEL, 1, { version: 0, a: 'y' })
      })
      const fields = { b: { ...text, unique: true, renamedFrom: 'a' } }
      await withModels(fields, async (lead) => {
        expect(await lead.read(MODEL, 1)).toMatchObject({ b: 'y' })
        expect(await catchError(lead.create(MODEL, { b: 'y' }))).toMatchObject({ kind: 'not-unique' })
        const stale = await catchError(lead.update(MODEL, 1, { version: 0, b: 'z' }))
        expect(stale.details.data).toMatchObject({
          fields: { b: { base: 'x', ours: 'z', theirs: 'y', verdict: 'clash' } },
        })
      })
      await withModels(fields, (lead) => lead.read(MODEL, 1))
    })

    test('indexes and unique sets are created and dropped', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, { a: '1', b: '1' }))
      const sets = { unique: [['a', 'b']], indexes: [['b']] }
      await withModels(
        { a: text, b: text },
        async (lead) => {
          const error = await catchError(lead.create(MODEL, { a: '1', b: '1' }))
          expect(error).toMatchObject({ kind: 'not-unique', details: { data: { fields: ['a', 'b'] } } })
        },
        sets,
      )
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, { a: '1', b: '1' }))
    })

    test('a field type can be widened', async () => {
      await withModels({ a: text, n: { type: 'integer' }, d: { type: 'decimal', scale: 2 } }, (lead) =>
        lead.create(MODEL, { a: 'x', n: 5, d: '1.25' }),
      )
      const wider = { a: { type: 'text' }, n: { type: 'long' }, d: { type: 'decimal', scale: 4 } }
      expect(await withModels(wider, (lead) => lead.read(MODEL, 1))).toMatchObject({
        a: 'x',
        n: 5,
        d: '1.2500',
      })
    })

    test('a default of now is the start time for a date, and plain text for a string', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const fields = {
        a: text,
        word: { type: 'string', default: 'now' },
        day: { type: 'date', default: 'now' },
      }
      const record = await withModels(fields, (lead) => lead.read(MODEL, 1))
      expect(record).toMatchObject({ word: 'now', day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) })
    })

    test('a renamed field may take the name of an empty column', async () => {
      await withModels({ phone: text, tel: text }, (lead) => lead.create(MODEL, { tel: '1' }))
      await withModels({ tel: text }, (lead) => lead.read(MODEL, 1))
      const record = await withModels({ phone: { ...text, renamedFrom: 'tel', unique: true } }, (lead) =>
        lead.read(MODEL, 1),
      )
      expect(record).toMatchObject({ phone: '1' })
    })

    test('a node with outdated models rejects writes to the changed model with a reason, and writes others', async () => {
      const old = await startService(engine, {
        location: location(),
        models: [...source({ a: text }), ...models],
        expects: ['busy'],
      })
      const records = await enter(old, 'direct')
      await records.create(MODEL, { a: 'before' })
      await plan({ a: text, b: { ...text, default: 'filled' } }, [], true)
      const error = await catchError(records.create(MODEL, { a: 'after' }))
      expect(error).toMatchObject({
        kind: 'busy',
        message: expect.stringMatching(/Restart it with the new models/),
      })
      expect((await records.find(MODEL)).total).toBe(1)
      expect((await fetch(`${old.url}/readyz`)).status).toBe(503)
      await records.create('crm.Contact', { firstName: 'goes on' })
      await old.close()
    })

    test('a different order of fields is no schema change', async () => {
      const one = await startService(engine, { location: location(), models: source({ a: text, b: text }) })
      const records = await enter(one, 'direct')
      await plan({ b: text, a: text }, [], true)
      expect((await records.create(MODEL, { a: 'x' })).data.version).toBe(0)
      await one.close()
    })

    test('nodes that start concurrently on an empty database create the tables once', async () => {
      const services = await Promise.all(
        [1, 2, 3].map(() =>
          startService(engine, { location: location(), models: source({ a: text }) }).catch(
            (error: unknown) => error,
          ),
        ),
      )
      for (const service of services) {
        // Only one of them can create the test account; the tables are created once.
        if (service instanceof Error) expect(service).toMatchObject({ kind: 'not-unique' })
        else await (service as Awaited<ReturnType<typeof startService>>).close()
      }
      expect((await plan({ a: text })).steps).toEqual([])
    })
  })
})
