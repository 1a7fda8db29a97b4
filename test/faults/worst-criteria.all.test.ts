// Measures a few of the most expensive searches by the work of the service itself, because other tests use the processors, too.
// worst-criteria-thousand.all.test.ts runs a thousand alone, and measures the whole delay.
import { expect, test } from 'vitest'
import { enter, onEveryEngine, catchError, startService } from '../targets.js'
import { LIMIT_MS, measure } from './worst-criteria.js'

onEveryEngine((engine) => {
  test(`80 of the most expensive searches occupy the event loop for less than ${LIMIT_MS} ms (p99)`, async () => {
    const { ownP99Ms, afterwards } = await measure(engine, { searches: 80 })
    expect(ownP99Ms).toBeLessThan(LIMIT_MS)
    expect(afterwards).toEqual(['20000 people', 'version 0', 'found'])
  })

  test('the value lists of a search have at most 5,000 values in total', async () => {
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
    const { kind, message } = await catchError(search(1_001))
    expect({ kind, message }).toEqual({
      kind: 'bad-request',
      message: 'the lists of a search have at most 5000 values, not 5001',
    })
    await service.close()
  })

  // PostgreSQL always runs a search in another process.
  if (engine === 'sqlite') {
    test('the mutant that searches on the main thread is caught', async () => {
      const { ownP99Ms } = await measure(engine, { searches: 2, kind: 'orders', mutant: 'searchingOnReader' })
      expect(ownP99Ms).toBeGreaterThan(LIMIT_MS)
    })
  }
})
