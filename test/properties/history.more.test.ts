import { expect, test } from 'vitest'
import { skippingOne, withoutBefore } from '../mutants/history.js'
import { onEveryEngine } from '../targets.js'
import { faultsOf } from './history-faults.js'

onEveryEngine((engine) => {
  test.each([2, 3])('every version and every moment is told as it was (seed %i)', async (seed) => {
    expect(await faultsOf(engine, seed, 60)).toEqual([])
  })

  test.each([
    ['a Log without what was before', withoutBefore],
    ['a walk that skips one Change', skippingOne],
  ])('%s is noticed', async (_, twin) => {
    expect(await faultsOf(engine, 1, 60, twin)).not.toEqual([])
  })
})
