// For random sequences of writes, what history tells of every version and of every moment is what was read then.
import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { faultsOf } from './history-faults.js'

// `history.more.test.ts` does it again and again, and catches what tells it wrong.
onEveryEngine((engine) => {
  test('every version and every moment is told as it was', async () => {
    expect(await faultsOf(engine, 1, 60)).toEqual([])
  })
})
