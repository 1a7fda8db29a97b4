import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { faultsOf } from './history-faults.js'

onEveryEngine((engine) => {
  test.each([2, 3])('every version and every moment is told as it was (seed %i)', async (seed) => {
    expect(await faultsOf(engine, seed, 60)).toEqual([])
  })
})
