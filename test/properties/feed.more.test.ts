import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { withLateSeq, withoutLogLock } from '../mutants/records.js'
import { complaintsOf } from './feed-rounds.js'

onEveryEngine((engine) => {
  test('a list and the feed after it have no hole between them, three times', async () => {
    expect(await complaintsOf(engine, 3)).toEqual([])
  })

  test('a find that says a number from after its page is caught', async () => {
    expect(await complaintsOf(engine, 20, withLateSeq)).not.toEqual([])
  })

  // SQLite writes one transaction after the other: it has no such lock to lose.
  if (engine === 'postgres')
    test('numbers that are not in the order of the commits are caught', async () => {
      expect(await complaintsOf(engine, 20, withoutLogLock)).not.toEqual([])
    })
})
