import { expect, test } from 'vitest'
import type { Records } from '../../src/wire.js'
import { onEngineOfTier } from '../targets.js'
import { faultsOf, MODEL, text, useLead } from './lead-fixture.js'

const numbered = { type: 'string', sequence: { prefix: 'T', suffix: '/x', padding: 3 } }

onEngineOfTier((engine) => {
  const { withModels } = useLead(engine)

  const create = async (lead: Records, data: object = {}) => (await lead.create(MODEL, data)).data['number']

  test('a text that becomes a sequence continues after its greatest number', async () => {
    const there = ['T007/x', 'T12/x', 'T1000', 'U2000/x', 'T99x/x', 'T/x', 'Tx', null]
    await withModels({ number: text }, async (lead) => {
      for (const number of there) await create(lead, { number })
    })
    await withModels({ number: numbered }, async (lead) => {
      expect(await create(lead)).toBe('T013/x')
      const { data } = await lead.find(MODEL)
      expect(data.map(({ number }) => number)).toEqual([...there, 'T013/x'])
    })
    await withModels({ number: numbered }, async (lead) => {
      expect(await create(lead)).toBe('T014/x')
    })
  })

  test('a sequence starts at its first number if that is greater than the stored ones', async () => {
    await withModels({ number: text }, (lead) => create(lead, { number: '5' }))
    const sequence = { type: 'string', sequence: { next: 100 } }
    expect(await withModels({ number: sequence }, (lead) => create(lead))).toBe('100')
  })

  test('a text with duplicates cannot become a sequence', async () => {
    await withModels({ number: text }, async (lead) => {
      await create(lead, { number: '5' })
      await create(lead, { number: '5' })
    })
    const faults = await faultsOf(withModels({ number: numbered }, (lead) => create(lead)))
    expect(faults).toMatch(/crm\.Lead: number cannot be unique: several records have the same/)
  })

  test('a new sequence leaves stored records without a number', async () => {
    await withModels({ title: text }, (lead) => lead.create(MODEL, { title: 'old' }))
    await withModels({ title: text, number: numbered }, async (lead) => {
      expect(await lead.read(MODEL, 1)).toMatchObject({ title: 'old', number: null, version: 0 })
      expect(await create(lead)).toBe('T001/x')
    })
  })

  test('a renamed sequence continues, and assigns no number twice', async () => {
    await withModels({ number: numbered }, async (lead) => {
      await create(lead)
      await create(lead)
      await lead.remove(MODEL, 2)
    })
    const renamed = { label: { ...numbered, renamedFrom: 'number' } }
    const labels = await withModels(renamed, async (lead) => {
      await lead.create(MODEL, {})
      return (await lead.find(MODEL)).data.map(({ label }) => label)
    })
    expect(labels).toEqual(['T001/x', 'T003/x'])
  })

  test('a sequence that was a text for a while continues after all its numbers', async () => {
    await withModels({ number: numbered }, (lead) => create(lead))
    await withModels({ number: text }, (lead) => create(lead, { number: 'T002/x' }))
    await withModels({ number: numbered }, async (lead) => {
      expect(await create(lead)).toBe('T003/x')
      await lead.remove(MODEL, 3)
    })
    await withModels({ number: text }, (lead) => lead.read(MODEL, 1))
    expect(await withModels({ number: numbered }, (lead) => create(lead))).toBe('T004/x')
  })

  test('a sequence with another prefix continues its numbers', async () => {
    await withModels({ number: numbered }, (lead) => create(lead))
    const other = { type: 'string', sequence: { prefix: 'U' } }
    expect(await withModels({ number: other }, (lead) => create(lead))).toBe('U2')
  })
})
