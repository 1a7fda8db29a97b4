import { expect, test } from 'vitest'
import { skippingOne, withoutBefore } from '../mutants/history.js'
import { onEveryEngine } from '../targets.js'
import { faultsOf } from './history-errors.js'

const STEPS = 60

onEveryEngine((engine) => {
  test.each([1, 2])(
    'the history has every version and every list as read at the time (seed %i)',
    async (seed) => {
      expect(await faultsOf(engine, seed, STEPS)).toEqual([])
    },
  )

  // The history is computed from the log in the same way on both engines.
  if (engine === 'postgres') return
  test.each([
    ['a change log without former values', withoutBefore],
    ['a rewind that skips one Change', skippingOne],
  ])('a mutant of the history with %s is caught', async (_, mutant) => {
    expect(await faultsOf(engine, 1, STEPS, mutant)).not.toEqual([])
  })
})
