import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { raceInProcess } from './race.js'

onEveryEngine((engine) => {
  test('of 32 equal concurrent updates exactly one succeeds, in 200 rounds', async () => {
    const result = await raceInProcess(engine, { rounds: 200, writers: 32 })
    expect(result).toEqual({ successes: 200, conflicts: 200 * 31, violations: [] })
  })
})
