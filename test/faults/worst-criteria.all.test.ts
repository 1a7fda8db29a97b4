// Measures time, so it runs alone, after the other tests.
import { expect, test } from 'vitest'
import { enter, onEveryEngine, catchError, startService } from '../targets.js'
import { LIMIT_MS, measureInQuiet } from './worst-criteria.js'

/** PostgreSQL searches in processes of its own, so fewer searches show what they cost the service. */
const SEARCHES = { sqlite: 300, postgres: 100 }

onEveryEngine((engine) => {
  test(`${SEARCHES[engine]} of the most expensive searches delay the event loop for less than ${LIMIT_MS} ms (p99)`, async () => {
    const { p99Ms, afterwards } = await measureInQuiet(engine, { searches: SEARCHES[engine] })
    expect(p99Ms).toBeLessThan(LIMIT_MS)
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
      message: 'the lists of a search can have at most 5000 values in total, not 5001',
    })
    await service.close()
  })

  // PostgreSQL always runs a search in another process.
  if (engine === 'sqlite') {
    test('the mutant that searches on the main thread is caught', async () => {
      const question = { searches: 2, kind: 'orders', mutant: 'searchingOnReader' } as const
      expect((await measureInQuiet(engine, question)).p99Ms).toBeGreaterThan(LIMIT_MS)
    })
  }
})
