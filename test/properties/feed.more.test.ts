import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { complaintsOf } from './feed-rounds.js'

onEveryEngine((engine) => {
  test('a list and the feed after it have no hole between them, three times', async () => {
    expect(await complaintsOf(engine, 3)).toEqual([])
  })
})
