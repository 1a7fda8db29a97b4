import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { LIMIT_MS, measureInQuiet } from './worst-criteria.js'

onEveryEngine((engine) => {
  test(`a thousand of the worst searches hold up the event loop for less than ${LIMIT_MS} ms, 99 times of 100`, async () => {
    const { p99Ms, afterwards } = await measureInQuiet(engine, { searches: 1_000 })
    expect(p99Ms).toBeLessThan(LIMIT_MS)
    expect(afterwards).toEqual(['20000 people', 'version 0', 'found'])
  })
})
