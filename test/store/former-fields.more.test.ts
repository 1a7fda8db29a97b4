// Names in the Log mean what they meant when they were written, whatever became of the fields since.
import { expect, test } from 'vitest'
import { FORMER_FIELD_TABLE } from '../../src/store/schema/former-fields.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records } from '../../src/wire.js'
import { withoutFormerFields } from '../mutants/history.js'
import { enter, onEveryEngine, refusalOf, startService } from '../targets.js'
import { MODEL, source, text, useLead } from './lead.js'

onEveryEngine((engine) => {
  const { place, plan, withModels, withDatabase } = useLead(engine)

  /** A record that had one value, and then another. */
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

  test('a field is followed through all of its names, with or without `was`', async () => {
    await withModels({ title, a: text }, async (lead) => {
      await twoVersions(lead, 'a', 'x', 'y')
    })
    await withModels({ title, b: { ...text, was: 'a' } }, async (lead) => {
      expect(await lead.readAt(MODEL, 1, 0)).toMatchObject({ b: 'x' })
    })
    await withModels({ title, b: text }, async (lead) => {
      expect(await lead.readAt(MODEL, 1, 0)).toMatchObject({ b: 'x' })
    })
    await withModels({ title, c: { ...text, was: 'b' } }, async (lead) => {
      expect(await lead.readAt(MODEL, 1, 0)).toMatchObject({ c: 'x' })
      expect((await lead.history(MODEL, 1)).data.map(({ changes }) => changes['c'])).toEqual([
        { before: 'x', after: 'y' },
        { before: null, after: 'x' },
      ])
      const stale = await refusalOf(lead.update(MODEL, 1, { version: 0, c: 'z' }))
      expect(stale.details.data).toMatchObject({
        ...{ baseKnown: true, fields: { c: { base: 'x', ours: 'z', theirs: 'y' } } },
      })
      expect((await lead.revert(MODEL, 1, { version: 1, to: 0 })).data).toMatchObject({ version: 2, c: 'x' })
    })
  })

  test('another field under an old name has nothing of the old one', async () => {
    await withModels({ title, a: text }, async (lead) => {
      await twoVersions(lead, 'a', 'x', 'y')
    })
    await withModels({ title, b: { ...text, was: 'a' } }, (lead) => lead.read(MODEL, 1))
    await withModels({ title, b: text, a: { ...text, default: 'new' } }, async (lead) => {
      await lead.update(MODEL, 1, { version: 1, a: 'newer' })
      const was = await lead.readAt(MODEL, 1, 0)
      expect(was).toMatchObject({ b: 'x' })
      expect(was).not.toHaveProperty('a')
      expect(await lead.readAt(MODEL, 1, 2)).toMatchObject({ a: 'newer', b: 'y' })
    })
  })

  test('what was dropped and is declared again begins anew', async () => {
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
      const stale = await refusalOf(lead.update(MODEL, 1, { version: 0, a: 'w' }))
      expect(stale.details.data).toMatchObject({ baseKnown: false })
      await lead.remove(MODEL, 1)
      const back = await lead.revert(MODEL, 1, { version: 4, to: 0 })
      expect(back.data).toMatchObject({ version: 5, title: 't', a: null })
    })
  })

  const other = { type: 'many-to-one', target: MODEL }
  const many = { type: 'many-to-many', target: MODEL }
  const kinds: readonly (readonly [string, object, unknown, object])[] = [
    ['a text that becomes a number', text, 'XL', { type: 'integer' }],
    ['a text that becomes a date', text, 'monday', { type: 'date' }],
    ['a text that becomes a reference', text, 'Acme', other],
    ['a text that becomes a list', text, 'x', many],
    ['a reference that becomes a text', other, { id: 1 }, text],
    ['a list that becomes a number', many, [{ id: 1 }], { type: 'integer' }],
  ]
  for (const [what, before, value, after] of kinds) {
    test(`${what} is left out of its past`, async () => {
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

  test('without notes of it, what a field cannot hold is not told, and nothing breaks', async () => {
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

  test('the twin that keeps no former names tells of a field what it was not', async () => {
    await withModels({ title, a: text }, async (lead) => {
      await twoVersions(lead, 'a', 'x', 'y')
    })
    for (const fields of [{ b: { ...text, was: 'a' } }, { c: { ...text, was: 'b' } }]) {
      const opened = await openDatabase(place().url, { poolSize: 2, statementTimeoutMs: 10_000 })
      const models = source({ title, ...fields })
      const service = await startService(engine, {
        ...{ place: place(), models, database: withoutFormerFields(opened) },
      })
      const lead = await enter(service, 'direct')
      if ('c' in fields) expect(await lead.readAt(MODEL, 1, 0)).toMatchObject({ c: 'y' })
      await service.close()
    }
  })
})
