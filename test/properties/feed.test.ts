// Whoever copies a list and follows the feed from its number has the table, whatever is written meanwhile and from wherever they start.
import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { complaintsOf } from './feed-rounds.js'

// `feed.more.test.ts` does it again and again, and catches what does it wrong.
onEveryEngine((engine) => {
  test('a list and the feed after it have no hole between them', async () => {
    expect(await complaintsOf(engine, 1)).toEqual([])
  })
})
