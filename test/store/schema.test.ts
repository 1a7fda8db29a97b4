import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { StartFaults } from '../../src/errors.js'
import { Catalog } from '../../src/model/catalog.js'
import { openDatabase } from '../../src/store/open.js'
import { describe as describeStep } from '../../src/store/schema-plan.js'
import { applySchema, showPlan } from '../../src/store/schema.js'
import { enter, newPlace, onEveryEngine, refusalOf, startService, type Place } from '../targets.js'

const MODEL = 'crm.Lead'
const source = (fields: object, more: object = {}) => [
  { file: 'lead.json', definition: { name: MODEL, fields, ...more } },
]
const text = { type: 'string' }

onEveryEngine((engine) => {
  let place: Place
  beforeEach(async () => {
    place = await newPlace(engine)
  })
  afterEach(() => {
    place.remove()
  })

  /** Starts with these fields, does something, stops. */
  async function withModels<T>(
    fields: object,
    use: (lead: Awaited<ReturnType<typeof enter>>) => Promise<T>,
    more: object = {},
  ): Promise<T> {
    const service = await startService(engine, { place, models: source(fields, more) })
    try {
      return await use(await enter(service, 'direct'))
    } finally {
      await service.close()
    }
  }

  async function plan(fields: object, drops: readonly string[] = [], apply = false, more: object = {}) {
    const db = await openDatabase(place.url, { poolSize: 2, statementTimeoutMs: 10_000 })
    try {
      return await (apply ? applySchema : showPlan)(db, Catalog.from(source(fields, more)), drops)
    } finally {
      await db.close()
    }
  }

  const faultsOf = async (start: Promise<unknown>) => {
    const error = await start.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(StartFaults)
    return (error as StartFaults).faults.join('\n')
  }

  test('an unchanged model changes nothing', async () => {
    await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
    const { steps, faults, notes } = await plan({ a: text })
    expect({ steps, faults, notes }).toEqual({ steps: [], faults: [], notes: [] })
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

    test('a default of now, a text that reads now, and the defaults of all other types', async () => {
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

    test('two nodes starting at once on an empty database both come up', async () => {
      const services = await Promise.all(
        [1, 2, 3].map(() =>
          startService(engine, { place, models: source({ a: text }) }).catch((error: unknown) => error),
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

  describe('refuses what would lose data', () => {
    const record = { a: 'x', b: 'y' }

    test('a field that is gone, while records hold a value in it', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, record))
      const faults = await faultsOf(withModels({ a: text }, (lead) => lead.read(MODEL, 1)))
      expect(faults).toMatch(/crm\.Lead\.b is no longer declared, and 1 record holds a value/)
      expect(faults).toMatch(/verso schema --apply --drop crm\.Lead\.b/)
      expect(await withModels({ a: text, b: text }, (lead) => lead.read(MODEL, 1))).toMatchObject(record)
    })

    test('a field of another type, while records hold a value in it', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, record))
      const faults = await faultsOf(
        withModels({ a: text, b: { type: 'integer' } }, (lead) => lead.read(MODEL, 1)),
      )
      expect(faults).toMatch(/crm\.Lead\.b cannot become integer/)
      expect(await withModels({ a: text, b: text }, (lead) => lead.read(MODEL, 1))).toMatchObject(record)
    })

    test('digits of a decimal', async () => {
      await withModels({ d: { type: 'decimal', scale: 3 } }, (lead) => lead.create(MODEL, { d: '1.125' }))
      const faults = await faultsOf(
        withModels({ d: { type: 'decimal', scale: 2 } }, (lead) => lead.read(MODEL, 1)),
      )
      expect(faults).toMatch(
        /crm\.Lead\.d cannot have 2 digits behind the point: the values that are stored have up to 3/,
      )
    })

    test('a unique field whose values are not', async () => {
      await withModels({ a: text }, async (lead) => {
        await lead.create(MODEL, { a: 'x' })
        await lead.create(MODEL, { a: 'x' })
      })
      const faults = await faultsOf(
        withModels({ a: { ...text, unique: true } }, (lead) => lead.read(MODEL, 1)),
      )
      expect(faults).toMatch(/crm\.Lead: a cannot be unique: several records have the same/)
    })

    test('a new computed field that is to be unique and is not', async () => {
      await withModels({ a: text }, async (lead) => {
        await lead.create(MODEL, { a: 'x' })
        await lead.create(MODEL, { a: 'x' })
      })
      const twice = { type: 'string', computed: '{a}{a}', unique: true, length: 20 }
      const faults = await faultsOf(withModels({ a: text, twice }, (lead) => lead.read(MODEL, 1)))
      expect(faults).toMatch(/crm\.Lead: twice cannot be unique/)
    })

    test('a text that is to become a password, and one that was', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const hidden = { a: { ...text, secret: 'password' } }
      expect(await faultsOf(withModels(hidden, (lead) => lead.read(MODEL, 1)))).toMatch(
        /cannot become a password/,
      )
    })

    test('names that differ from what is stored in case only', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, {}))
      expect(await faultsOf(plan({ A: text }, [], true))).toMatch(/a column called "a" is there already/)
      const other = [{ file: 'x.json', definition: { name: 'crm.lead', fields: { a: text } } }]
      const db = await openDatabase(place.url, { poolSize: 2, statementTimeoutMs: 10_000 })
      expect(await faultsOf(applySchema(db, Catalog.from(other)))).toMatch(
        /a model called "crm\.Lead" is stored already/,
      )
      await db.close()
    })

    test('a former name that is misspelled', async () => {
      await withModels({ phone: text }, (lead) => lead.create(MODEL, { phone: '1' }))
      const faults = await faultsOf(plan({ tel: { ...text, was: 'phnoe' } }, [], true))
      expect(faults).toMatch(/write was: "phone" in the field that takes its place \(one is misspelled\)/)
    })

    test('all reasons at once, and nothing is done', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, record))
      const faults = await faultsOf(plan({ a: { type: 'integer' }, c: text }, [], true))
      expect(faults).toMatch(/crm\.Lead\.a/)
      expect(faults).toMatch(/crm\.Lead\.b/)
      expect((await plan({ a: text, b: text })).steps).toEqual([])
    })

    test('an empty column is no loss: it stays, and its type may change', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      expect((await plan({ a: text })).notes).toEqual([
        `${MODEL}.b is no longer declared; its column is empty and stays`,
      ])
      const changed = await withModels({ a: text, b: { type: 'integer' } }, async (lead) => {
        await lead.update(MODEL, 1, { version: 0, b: 5 })
        return lead.read(MODEL, 1)
      })
      expect(changed).toMatchObject({ a: 'x', b: 5 })
    })
  })

  describe('does what is named', () => {
    test('drops a field', async () => {
      await withModels({ a: text, b: { ...text, unique: true } }, (lead) =>
        lead.create(MODEL, { a: 'x', b: 'y' }),
      )
      const { steps } = await plan({ a: text }, [`${MODEL}.b`], true)
      expect(steps.map(describeStep)).toEqual([
        `- ${MODEL}: index on b dropped`,
        `- ${MODEL}.b: column dropped`,
      ])
      const record = await withModels({ a: text }, (lead) => lead.read(MODEL, 1))
      expect(record).toMatchObject({ a: 'x' })
      expect(record).not.toHaveProperty('b')
    })

    test('drops a field to give it another type, index and all', async () => {
      await withModels({ a: { ...text, unique: true } }, (lead) => lead.create(MODEL, { a: 'x' }))
      const fields = { a: { type: 'integer', unique: true } }
      await plan(fields, [`${MODEL}.a`], true)
      await withModels(fields, async (lead) => {
        expect(await lead.read(MODEL, 1)).toMatchObject({ a: null })
        await lead.create(MODEL, { a: 1 })
        expect(await refusalOf(lead.create(MODEL, { a: 1 }))).toMatchObject({ kind: 'not-unique' })
      })
    })

    test('keeps the records of a model that is not declared, and drops them when named', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const other = Catalog.from([{ file: 'x.json', definition: { name: 'crm.Other', fields: { a: text } } }])
      const db = await openDatabase(place.url, { poolSize: 2, statementTimeoutMs: 10_000 })
      try {
        const kept = await applySchema(db, other)
        expect(kept.notes).toEqual([`${MODEL} is not declared; its records are kept and not served`])
        const { steps } = await applySchema(db, other, [MODEL])
        expect(steps.map(describeStep)).toEqual([`- ${MODEL}: table dropped`])
        expect((await applySchema(db, other)).notes).toEqual([])
      } finally {
        await db.close()
      }
    })

    test('a model that comes back after it was dropped goes on with new ids', async () => {
      await withModels({ a: text }, async (lead) => {
        for (let index = 0; index < 3; index++) await lead.create(MODEL, { a: 'x' })
      })
      const nothing = Catalog.from([])
      const db = await openDatabase(place.url, { poolSize: 2, statementTimeoutMs: 10_000 })
      await applySchema(db, nothing, [MODEL])
      await db.close()
      const { data } = await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'y' }))
      expect(data.id).toBe(4)
    })

    test('a name that is nothing is a fault', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      expect(await faultsOf(plan({ a: text }, [`${MODEL}.zzz`], true))).toMatch(
        /nothing called "crm\.Lead\.zzz"/,
      )
    })
  })
})
