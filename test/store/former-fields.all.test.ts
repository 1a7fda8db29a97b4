// Field names in the change log keep the meaning they had when they were logged.
import { expect, test } from 'vitest'
import { FORMER_FIELD_TABLE } from '../../src/store/schema/former-fields.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records } from '../../src/wire.js'
import { withoutFormerFields } from '../mutants/history.js'
import { enter, onEveryEngine, catchError, startService } from '../targets.js'
import { MODEL, source, text, useLead } from './lead-fixture.js'

onEveryEngine((engine) => {
  const { location, plan, withModels, withDatabase } = useLead(engine)

  /** Creates a record with one value and updates it to another. */
  const twoVersions = async (lead: Records, name: string, first: unknown, second: unknown) => {
    await lead.create(MODEL, { title: 't', [name]: first })
    await lead.update(MODEL, 1, { version: 0, [name]: second })
  }
  const title = text
  const asOfFirst = async (lead: Records, fields?: string[]) => {
    const { data } = await lead.history(MODEL, 1)
    const on = data.find(({ version }) => version === 0)?.on ?? ''
    return (await lead.find(MODEL, { asOf: on, ...(fields ? { fields } : {}) })).data[0]
  }

  test('the history follows a field through all its names', async () => {
    await withModels({ title, a: text }, async (lead) => {
      await twoVersions(lead, 'a', 'x', 'y')
    })
    await withModels({ title, b: { ...text, renamedFrom: 'a' } }, async (lead) => {
      expect(await lead.readAt(MODEL, 1, 0)).toMatchObject({ b: 'x' })
    })
    await withModels({ title, b: text }, async (lead) => {
      expect(await lead.readAt(MODEL, 1, 0)).toMatchObject({ b: 'x' })
    })
    await withModels({ title, c: { ...text, renamedFrom: 'b' } }, async (lead) => {
      expect(await lead.readAt(MODEL, 1, 0)).toMatchObject({ c: 'x' })
      expect((await lead.history(MODEL, 1)).data.map(({ changes }) => changes['c'])).toEqual([
        { before: 'x', after: 'y' },
        { before: null, after: 'x' },
      ])
      const stale = await catchError(lead.update(MODEL, 1, { version: 0, c: 'z' }))
      expect(stale.details.data).toMatchObject({
        ...{ baseKnown: true, fields: { c: { base: 'x', ours: 'z', theirs: 'y' } } },
      })
      expect((await lead.revert(MODEL, 1, { version: 1, to: 0 })).data).toMatchObject({ version: 2, c: 'x' })
    })
  })

  test('a new field under a former name has no history of the former field', async () => {
    await withModels({ title, a: text }, async (lead) => {
      await twoVersions(lead, 'a', 'x', 'y')
    })
    await withModels({ title, b: { ...text, renamedFrom: 'a' } }, (lead) => lead.read(MODEL, 1))
    await withModels({ title, b: text, a: { ...text, default: 'new' } }, async (lead) => {
      await lead.update(MODEL, 1, { version: 1, a: 'newer' })
      const was = await lead.readAt(MODEL, 1, 0)
      expect(was).toMatchObject({ b: 'x' })
      expect(was).not.toHaveProperty('a')
      expect(await lead.readAt(MODEL, 1, 2)).toMatchObject({ a: 'newer', b: 'y' })
    })
  })

  test('a field dropped and declared again starts without history', async () => {
    await withModels({ title, a: text }, async (lead) => {
      await twoVersions(lead, 'a', 'x', 'y')
    })
    await plan({ title }, [`${MODEL}.a`], true)
    await withModels({ title, a: text }, async (lead) => {
      await lead.update(MODEL, 1, { version: 1, a: 'z' })
      expect(await lead.readAt(MODEL, 1, 0)).not.toHaveProperty('a')
      expect(await asOfFirst(lead, ['title', 'a'])).toEqual({ id: 1, version: 0, title: 't' })
      const data = (await lead.revert(MODEL, 1, { version: 2, to: 0 })).data
      expect(data).toMatchObject({ title: 't', a: 'z' })
      const stale = await catchError(lead.update(MODEL, 1, { version: 0, a: 'w' }))
      expect(stale.details.data).toMatchObject({ baseKnown: false })
      await lead.remove(MODEL, 1)
      const back = await lead.revert(MODEL, 1, { version: 4, to: 0 })
      expect(back.data).toMatchObject({ version: 5, title: 't', a: null })
    })
  })

  const other = { type: 'many-to-one', target: MODEL }
  const many = { type: 'many-to-many', target: MODEL }
  const kinds: readonly (readonly [string, object, unknown, object])[] = [
    ['a text changed to a number', text, 'XL', { type: 'integer' }],
    ['a text changed to a date', text, 'monday', { type: 'date' }],
    ['a text changed to a reference', text, 'Acme', other],
    ['a text changed to a list', text, 'x', many],
    ['a reference changed to a text', other, { id: 1 }, text],
    ['a list changed to a number', many, [{ id: 1 }], { type: 'integer' }],
  ]
  for (const [what, before, value, after] of kinds) {
    test(`${what} is omitted from its history`, async () => {
      await withModels({ title, size: before }, async (lead) => {
        await lead.create(MODEL, { title: 't' })
        await lead.update(MODEL, 1, { version: 0, size: value })
        await lead.update(MODEL, 1, { version: 1, size: Array.isArray(value) ? [] : null })
      })
      const check = async (lead: Records) => {
        for (const version of [0, 1]) {
          const was = await lead.readAt(MODEL, 1, version)
          expect(was).toMatchObject({ title: 't', version })
          expect(was).not.toHaveProperty('size')
        }
        const { data } = await lead.history(MODEL, 1)
        expect(data.map(({ changes }) => Object.keys(changes))).toEqual([[], [], ['title']])
        expect(await asOfFirst(lead, ['title', 'size'])).toEqual({ id: 1, version: 0, title: 't' })
      }
      await withModels({ title, size: after }, check)
    })
  }

  test('without notes of former fields, values that a field cannot hold are omitted', async () => {
    await withModels({ title, size: text }, async (lead) => {
      await twoVersions(lead, 'size', 'XL', null)
    })
    await withModels({ title, size: { type: 'integer' } }, (lead) => lead.read(MODEL, 1))
    await withDatabase((db) => db.transaction((tx) => tx.run(`delete from ${FORMER_FIELD_TABLE}`)))
    await withModels({ title, size: { type: 'integer' } }, async (lead) => {
      expect(await lead.readAt(MODEL, 1, 0)).not.toHaveProperty('size')
      expect(await asOfFirst(lead, ['title', 'size'])).toEqual({ id: 1, version: 0, title: 't' })
      expect((await lead.revert(MODEL, 1, { version: 1, to: 0 })).data).toMatchObject({ size: null })
    })
  })

  test('a mutant that stores no former names returns wrong values of the past', async () => {
    await withModels({ title, a: text }, async (lead) => {
      await twoVersions(lead, 'a', 'x', 'y')
    })
    for (const fields of [{ b: { ...text, renamedFrom: 'a' } }, { c: { ...text, renamedFrom: 'b' } }]) {
      const opened = await openDatabase(location().url, { poolSize: 2, statementTimeoutMs: 10_000 })
      const models = source({ title, ...fields })
      const service = await startService(engine, {
        ...{ location: location(), models, database: withoutFormerFields(opened) },
      })
      const lead = await enter(service, 'direct')
      if ('c' in fields) expect(await lead.readAt(MODEL, 1, 0)).toMatchObject({ c: 'y' })
      await service.close()
    }
  })
})
