import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { LIMIT_MS, measureInQuiet } from './worst-criteria.js'

onEveryEngine((engine) => {
  test(`1,000 of the most expensive searches delay the event loop for less than ${LIMIT_MS} ms (p99)`, async () => {
    const { p99Ms, afterwards } = await measureInQuiet(engine, { searches: 1_000 })
    expect(p99Ms).toBeLessThan(LIMIT_MS)
    expect(afterwards).toEqual(['20000 people', 'version 0', 'found'])
  })
})
