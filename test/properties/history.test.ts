// For random sequences of writes, the history has every version and every list as read at the time.
import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { faultsOf } from './history-errors.js'

// `history.all.test.ts` runs longer sequences, more seeds and the mutants.
onEveryEngine((engine) => {
  test('the history has every version and every list as read at the time', async () => {
    expect(await faultsOf(engine, 8, 30)).toEqual([])
  })
})
