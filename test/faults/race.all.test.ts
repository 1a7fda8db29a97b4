import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { raceInProcess } from './race.js'

onEveryEngine((engine) => {
  test('of 32 equal concurrent updates exactly one succeeds, in 50 rounds', async () => {
    const result = await raceInProcess(engine, { rounds: 50, writers: 32 })
    expect(result).toEqual({ successes: 50, conflicts: 50 * 31, violations: [] })
  })
})
