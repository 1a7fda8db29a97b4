// A copy of a list, updated from the feed after it, equals the table during random writes, from any start.
import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { complaintsOf } from './feed-rounds.js'

// `feed.all.test.ts` runs more rounds and the mutants.
onEveryEngine((engine) => {
  test('a list and the feed after it have no gap during random writes', async () => {
    expect(await complaintsOf(engine, 1)).toEqual([])
  })
})
