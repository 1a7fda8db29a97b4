import { describe, expect, test } from 'vitest'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { describeStep as describeStep } from '../../src/store/schema/plan.js'
import { applySchema } from '../../src/store/schema/apply.js'
import { onEveryEngine, catchError } from '../targets.js'
import { faultsOf, MODEL, text, useLead } from './lead-fixture.js'

onEveryEngine((engine) => {
  const { plan, withDatabase, withModels } = useLead(engine)

  describe('schema changes that would lose data', () => {
    const record = { a: 'x', b: 'y' }

    test('a removed field with values stops the start', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, record))
      const faults = await faultsOf(withModels({ a: text }, (lead) => lead.read(MODEL, 1)))
      expect(faults).toMatch(/crm\.Lead\.b is no longer declared, but 1 record has a value/)
      expect(faults).toMatch(/verso schema --apply --drop crm\.Lead\.b/)
      expect(await withModels({ a: text, b: text }, (lead) => lead.read(MODEL, 1))).toMatchObject(record)
    })

    test('a field with values and an incompatible new type stops the start', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, record))
      const faults = await faultsOf(
        withModels({ a: text, b: { type: 'integer' } }, (lead) => lead.read(MODEL, 1)),
      )
      expect(faults).toMatch(/crm\.Lead\.b cannot become integer/)
      expect(await withModels({ a: text, b: text }, (lead) => lead.read(MODEL, 1))).toMatchObject(record)
    })

    test('a smaller scale of a decimal with longer values stops the start', async () => {
      await withModels({ d: { type: 'decimal', scale: 3 } }, (lead) => lead.create(MODEL, { d: '1.125' }))
      const faults = await faultsOf(
        withModels({ d: { type: 'decimal', scale: 2 } }, (lead) => lead.read(MODEL, 1)),
      )
      expect(faults).toMatch(/crm\.Lead\.d cannot have 2 decimal places: the stored values have up to 3/)
    })

    test('a unique option on a field with duplicates stops the start', async () => {
      await withModels({ a: text }, async (lead) => {
        await lead.create(MODEL, { a: 'x' })
        await lead.create(MODEL, { a: 'x' })
      })
      const faults = await faultsOf(
        withModels({ a: { ...text, unique: true } }, (lead) => lead.read(MODEL, 1)),
      )
      expect(faults).toMatch(/crm\.Lead: a cannot be unique: several records have the same/)
    })

    test('a new unique computed field with duplicates stops the start', async () => {
      await withModels({ a: text }, async (lead) => {
        await lead.create(MODEL, { a: 'x' })
        await lead.create(MODEL, { a: 'x' })
      })
      const twice = { type: 'string', computed: '{a}{a}', unique: true, length: 20 }
      const faults = await faultsOf(withModels({ a: text, twice }, (lead) => lead.read(MODEL, 1)))
      expect(faults).toMatch(/crm\.Lead: twice cannot be unique/)
    })

    test('a text with values cannot become a password', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const hidden = { a: { ...text, secret: 'password' } }
      expect(await faultsOf(withModels(hidden, (lead) => lead.read(MODEL, 1)))).toMatch(
        /cannot become a password/,
      )
    })

    test('names that differ from stored ones only in case stop the start', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, {}))
      expect(await faultsOf(plan({ A: text }, [], true))).toMatch(/a column with the name "a" already exists/)
      const other = [{ file: 'x.json', definition: { name: 'crm.lead', fields: { a: text } } }]
      const start = withDatabase((db) => applySchema(db, Catalog.from(other)))
      expect(await faultsOf(start)).toMatch(/a model with the name "crm\.Lead" is already stored/)
    })

    test('a misspelled former name stops the start with a hint', async () => {
      await withModels({ phone: text }, (lead) => lead.create(MODEL, { phone: '1' }))
      const faults = await faultsOf(plan({ tel: { ...text, renamedFrom: 'phnoe' } }, [], true))
      expect(faults).toMatch(/write renamedFrom: "phone" in the field that replaces it \(one is misspelled\)/)
    })

    test('all reasons are reported at once, and nothing is changed', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, record))
      const faults = await faultsOf(plan({ a: { type: 'integer' }, c: text }, [], true))
      expect(faults).toMatch(/crm\.Lead\.a/)
      expect(faults).toMatch(/crm\.Lead\.b/)
      expect((await plan({ a: text, b: text })).steps).toEqual([])
    })

    test('an empty column of a removed field stays, and its type may change', async () => {
      await withModels({ a: text, b: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      expect((await plan({ a: text })).notes).toEqual([
        `${MODEL}.b is no longer declared; its column is empty and is kept`,
      ])
      const changed = await withModels({ a: text, b: { type: 'integer' } }, async (lead) => {
        await lead.update(MODEL, 1, { version: 0, b: 5 })
        return lead.read(MODEL, 1)
      })
      expect(changed).toMatchObject({ a: 'x', b: 5 })
    })
  })

  describe('named drops', () => {
    test('a named field is dropped with its index', async () => {
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

    test('a named field is dropped and created again with another type and index', async () => {
      await withModels({ a: { ...text, unique: true } }, (lead) => lead.create(MODEL, { a: 'x' }))
      const fields = { a: { type: 'integer', unique: true } }
      await plan(fields, [`${MODEL}.a`], true)
      await withModels(fields, async (lead) => {
        expect(await lead.read(MODEL, 1)).toMatchObject({ a: null })
        await lead.create(MODEL, { a: 1 })
        expect(await catchError(lead.create(MODEL, { a: 1 }))).toMatchObject({ kind: 'not-unique' })
      })
    })

    test('records of a model that is no longer declared are kept, and dropped if named', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      const other = Catalog.from([{ file: 'x.json', definition: { name: 'crm.Other', fields: { a: text } } }])
      await withDatabase(async (db) => {
        const kept = await applySchema(db, other)
        expect(kept.notes).toEqual([`${MODEL} is not declared; its records are kept but not served`])
        const { steps } = await applySchema(db, other, [MODEL])
        expect(steps.map(describeStep)).toEqual([`- ${MODEL}: table dropped`])
        expect((await applySchema(db, other)).notes).toEqual([])
      })
    })

    test('a model declared again after a drop continues with new ids', async () => {
      await withModels({ a: text }, async (lead) => {
        for (let index = 0; index < 3; index++) await lead.create(MODEL, { a: 'x' })
      })
      await withDatabase((db) => applySchema(db, Catalog.from([]), [MODEL]))
      const { data } = await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'y' }))
      expect(data.id).toBe(4)
    })

    test('a drop of an unknown name is an error', async () => {
      await withModels({ a: text }, (lead) => lead.create(MODEL, { a: 'x' }))
      expect(await faultsOf(plan({ a: text }, [`${MODEL}.zzz`], true))).toMatch(
        /nothing to drop has the name "crm\.Lead\.zzz"/,
      )
    })
  })
})
