// A few of the worst searches, beside other tests that need processors too: so here only what the service itself is at work counts.
// worst-criteria.long.test.ts has a thousand, alone, and looks at the whole delay.
import { expect, test } from 'vitest'
import { enter, onEveryEngine, refusalOf, startService } from '../targets.js'
import { LIMIT_MS, measure } from './worst-criteria.js'

onEveryEngine((engine) => {
  test(`80 of the worst searches keep the event loop at work for less than ${LIMIT_MS} ms, 99 times of 100`, async () => {
    const { ownP99Ms, afterwards } = await measure(engine, { searches: 80 })
    expect(ownP99Ms).toBeLessThan(LIMIT_MS)
    expect(afterwards).toEqual(['20000 people', 'version 0', 'found'])
  })

  test('the lists of a search have at most 5,000 values together', async () => {
    const service = await startService(engine)
    const records = await enter(service, 'direct')
    const among = (count: number) => ({
      fieldName: 'id',
      operator: 'in',
      value: Array.from({ length: count }, (_, index) => index),
    })
    const criteria = [1, 2, 3, 4].map(() => among(1_000))
    const search = (last: number) =>
      records.search('rel.Person', { data: { criteria: [...criteria, among(last)] } })
    expect(await search(1_000)).toMatchObject({ total: 0 })
    const { kind, message } = await refusalOf(search(1_001))
    expect({ kind, message }).toEqual({
      kind: 'bad-request',
      message: 'the lists of a search have at most 5000 values, not 5001',
    })
    await service.close()
  })

  // A search on PostgreSQL runs in another process, always.
  if (engine === 'sqlite') {
    test('a store that searches where everything else runs is caught', async () => {
      const { ownP99Ms } = await measure(engine, { searches: 2, kind: 'orders', twin: 'searchingOnReader' })
      expect(ownP99Ms).toBeGreaterThan(LIMIT_MS)
    })
  }
})
