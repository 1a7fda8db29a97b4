import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { withLateSeq, withoutLogLock } from '../mutants/records.js'
import { complaintsOf } from './feed-rounds.js'

onEveryEngine((engine) => {
  test('a list and the feed after it have no gap during random writes, in two rounds', async () => {
    expect(await complaintsOf(engine, 2)).toEqual([])
  })

  test('a mutant whose find returns a later sequence number is caught', async () => {
    expect(await complaintsOf(engine, 20, withLateSeq)).not.toEqual([])
  })

  // SQLite serializes transactions, so it has no such lock.
  if (engine === 'postgres')
    test('a mutant whose sequence numbers are not in commit order is caught', async () => {
      expect(await complaintsOf(engine, 20, withoutLogLock)).not.toEqual([])
    })
})
