// A node that does not know a relation must not write records that depend on it.
import { expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { enter, newLocation, onEngineOfTier, catchError, startService } from '../targets.js'

const name = { type: 'string' } as const
const Company = defineModel({ name: 'old.Company', fields: { name } })
const Owning = defineModel({
  name: 'old.Company',
  fields: { name, sites: { type: 'one-to-many', target: 'old.Site', mappedBy: 'company', owned: true } },
})
const Site = defineModel({
  name: 'old.Site',
  fields: { name, company: { type: 'many-to-one', target: 'old.Company' } },
})
const Tag = defineModel({ name: 'old.Tag', fields: { name } })
const Invoice = defineModel({
  name: 'old.Invoice',
  fields: {
    name,
    company: { type: 'many-to-one', target: 'old.Company' },
    tags: { type: 'many-to-many', target: 'old.Tag' },
  },
})

const sources = (...definitions: readonly object[]) =>
  definitions.map((definition) => ({ file: 'older.ts', definition }))

onEngineOfTier((engine) => {
  test('a node that does not know that a list is owned cannot add a member', async () => {
    const location = await newLocation(engine)
    const old = await startService(engine, { location, models: sources(Company, Site) })
    const before = await enter(old, 'direct')
    const { data: company } = await before.create('old.Company', {})
    const current = await startService(engine, { location, models: sources(Owning, Site) })
    const error = await catchError(before.create('old.Site', { company: { id: company.id } }))
    expect([error.kind, error.message]).toEqual(['busy', expect.stringContaining('Restart it')])
    const now = await enter(current, 'direct')
    await now.create('old.Site', { company: { id: company.id } })
    expect(await now.read('old.Company', company.id)).toMatchObject({ version: 1 })
    await current.close()
    await old.close()
    location.remove()
  })

  test('a node that does not know a new referring model cannot delete records it may refer to', async () => {
    const location = await newLocation(engine)
    const old = await startService(engine, { location, models: sources(Company, Tag) })
    const before = await enter(old, 'direct')
    const { data: company } = await before.create('old.Company', {})
    const current = await startService(engine, { location, models: sources(Company, Tag, Invoice) })
    const now = await enter(current, 'direct')
    await now.create('old.Invoice', { company: { id: company.id } })
    expect((await catchError(before.remove('old.Company', company.id))).kind).toBe('busy')
    await current.close()
    await old.close()
    location.remove()
  })

  test('a node with some of the models cannot delete records that the others refer to', async () => {
    const location = await newLocation(engine)
    const whole = await startService(engine, { location, models: sources(Company, Tag, Invoice) })
    const everything = await enter(whole, 'direct')
    const { data: company } = await everything.create('old.Company', {})
    const { data: tag } = await everything.create('old.Tag', {})
    const { data: free } = await everything.create('old.Tag', {})
    const data = { company: { id: company.id }, tags: [{ id: tag.id }] }
    const { data: invoice } = await everything.create('old.Invoice', data)
    const part = await startService(engine, { location, models: sources(Company, Tag) })
    const records = await enter(part, 'direct')
    const references = [
      ['old.Company', company.id, 'company'],
      ['old.Tag', tag.id, 'tags'],
    ] as const
    for (const [model, id, field] of references) {
      const error = await catchError(records.remove(model, id))
      expect(error.kind).toBe('still-referenced')
      expect(error.details.data).toMatchObject({
        references: [{ entityName: 'old.Invoice', field, total: 1, ids: [invoice.id] }],
      })
    }
    await records.remove('old.Tag', free.id)
    await everything.update('old.Company', company.id, { version: 0, name: 'still written here' })
    await part.close()
    await whole.close()
    location.remove()
  })
})
