import { describe, expect, test } from 'vitest'
import { models } from '../models.js'
import { enter, onEveryEngine, refusalOf, startService } from '../targets.js'
import { MODEL, source, text, useLead } from './lead.js'

onEveryEngine((engine) => {
  const { place, plan, withModels } = useLead(engine)

  test('an unchanged model changes nothing', async () => {
    await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
    const { steps, errors, notes } = await plan({ a: text })
    expect({ steps, faults: errors, notes }).toEqual({ steps: [], faults: [], notes: [] })
  })

  describe('grows', () => {
    test('a new field, with its default for the records that are there; their versions stay', async () => {
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

    test('a new computed field is worked out for the records that are there', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const fields = { a: text, twice: { type: 'string', computed: '{a}-{a}' }, b: text }
      expect(await withModels(fields, (lead) => lead.read(MODEL, 1))).toMatchObject({
        version: 0,
        twice: 'x-x',
        b: null,
      })
    })

    test('a renamed field keeps its values, its past, and its index', async () => {
      await withModels({ a: { ...text, unique: true } }, async (lead) => {
        await lead.create(MODEL, { a: 'x' })
        await lead.update(MODEL, 1, { version: 0, a: 'y' })
      })
      const fields = { b: { ...text, unique: true, was: 'a' } }
      await withModels(fields, async (lead) => {
        expect(await lead.read(MODEL, 1)).toMatchObject({ b: 'y' })
        expect(await refusalOf(lead.create(MODEL, { b: 'y' }))).toMatchObject({ kind: 'not-unique' })
        const stale = await refusalOf(lead.update(MODEL, 1, { version: 0, b: 'z' }))
        expect(stale.details.data).toMatchObject({
          fields: { b: { base: 'x', ours: 'z', theirs: 'y', verdict: 'clash' } },
        })
      })
      await withModels(fields, (lead) => lead.read(MODEL, 1))
    })

    test('indexes and unique sets come and go', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, { a: '1', b: '1' }))
      const sets = { unique: [['a', 'b']], indexes: [['b']] }
      await withModels(
        { a: text, b: text },
        async (lead) => {
          const refusal = await refusalOf(lead.create(MODEL, { a: '1', b: '1' }))
          expect(refusal).toMatchObject({ kind: 'not-unique', details: { data: { fields: ['a', 'b'] } } })
        },
        sets,
      )
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, { a: '1', b: '1' }))
    })

    test('types may widen', async () => {
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

    test('a default of now is the time of the start, and a text that reads now is a text', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const fields = {
        a: text,
        word: { type: 'string', default: 'now' },
        day: { type: 'date', default: 'now' },
      }
      const record = await withModels(fields, (lead) => lead.read(MODEL, 1))
      expect(record).toMatchObject({ word: 'now', day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) })
    })

    test('a field takes the name of a column that was kept empty', async () => {
      await withModels({ phone: text, tel: text }, (lead) => lead.create(MODEL, { tel: '1' }))
      await withModels({ tel: text }, (lead) => lead.read(MODEL, 1))
      const record = await withModels({ phone: { ...text, was: 'tel', unique: true } }, (lead) =>
        lead.read(MODEL, 1),
      )
      expect(record).toMatchObject({ phone: '1' })
    })

    test('a node with older models writes no more beside the new ones, and says why; other models go on', async () => {
      const old = await startService(engine, {
        place: place(),
        models: [...source({ a: text }), ...models],
        expects: ['busy'],
      })
      const records = await enter(old, 'direct')
      await records.create(MODEL, { a: 'before' })
      await plan({ a: text, b: { ...text, default: 'filled' } }, [], true)
      const refusal = await refusalOf(records.create(MODEL, { a: 'after' }))
      expect(refusal).toMatchObject({
        kind: 'busy',
        message: expect.stringMatching(/Restart it with the new models/),
      })
      expect((await records.find(MODEL)).total).toBe(1)
      expect((await fetch(`${old.url}/readyz`)).status).toBe(503)
      await records.create('crm.Contact', { firstName: 'goes on' })
      await old.close()
    })

    test('fields in another order are the same tables', async () => {
      const one = await startService(engine, { place: place(), models: source({ a: text, b: text }) })
      const records = await enter(one, 'direct')
      await plan({ b: text, a: text }, [], true)
      expect((await records.create(MODEL, { a: 'x' })).data.version).toBe(0)
      await one.close()
    })

    test('two nodes starting at once on an empty database both come up', async () => {
      const services = await Promise.all(
        [1, 2, 3].map(() =>
          startService(engine, { place: place(), models: source({ a: text }) }).catch(
            (error: unknown) => error,
          ),
        ),
      )
      for (const service of services) {
        // The account of the tests may be made by one of them only; the tables are made once.
        if (service instanceof Error) expect(service).toMatchObject({ kind: 'not-unique' })
        else await (service as Awaited<ReturnType<typeof startService>>).close()
      }
      expect((await plan({ a: text })).steps).toEqual([])
    })
  })
})
