// What a thousand do is in merge-race.long.test.ts.
import { describe, expect, test } from 'vitest'
import { forgettingChanges, writingAllFields } from '../merge-twins.js'
import { onEveryEngine } from '../targets.js'
import * as twins from '../twins.js'
import { mergeInProcess, type MergeRace } from './merge-race.js'
import { onNodes } from './nodes.js'
import { mergeAtRandom } from './random-merges.js'
import { FIELDS, WIDE } from './wide-model.js'

const SOME = 80
const RACE: MergeRace = { writers: SOME, connections: SOME }
const ALL_STAND = { successes: SOME, version: SOME, violations: [] }
const UNTIL_CAUGHT: MergeRace = { writers: 60, connections: 60 }
const ROUNDS = 20

onEveryEngine((engine) => {
  test(`${SOME} people change a field each at once, all from the same version: every change stands`, async () => {
    expect(await mergeInProcess(engine, RACE)).toEqual(ALL_STAND)
  })

  test('a merge that reads, checks and writes is caught', async () => {
    const { violations } = await mergeInProcess(engine, UNTIL_CAUGHT, twins.readCheckWrite)
    expect(violations).toContainEqual(expect.stringMatching(/^the total is|was given twice|were answered/))
  })

  test('a merge that writes the whole record as it was is caught', async () => {
    const { violations } = await mergeInProcess(engine, UNTIL_CAUGHT, writingAllFields(WIDE, FIELDS))
    expect(violations).toContainEqual(expect.stringMatching(/was acknowledged, and is lost/))
  })

  test('of random changes at once those that are accepted make the record, and no other is refused', async () => {
    expect(await onNodes(engine, {}, (nodes) => mergeAtRandom(nodes, ROUNDS))).toEqual([])
  })

  test('a merge that does not see what others changed is caught', async () => {
    const faults = await onNodes(engine, { twin: forgettingChanges }, (nodes) => mergeAtRandom(nodes, ROUNDS))
    expect(faults).toContainEqual(expect.stringMatching(/^wrongly accepted/))
  })
})

// One transaction after the other on SQLite: there nobody can come in between.
describe('postgres', () => {
  test('a merge that does not hold the record while it looks at it is caught', async () => {
    const { violations } = await mergeInProcess('postgres', UNTIL_CAUGHT, twins.withoutRowLocks)
    expect(violations).toContainEqual(expect.stringMatching(/were answered 409/))
  })

  test('a merge that neither holds the record nor asks for its version is caught', async () => {
    const { violations } = await mergeInProcess('postgres', UNTIL_CAUGHT, (db) =>
      twins.withoutRowLocks(twins.withoutVersionGuard(db)),
    )
    expect(violations).toContainEqual(expect.stringMatching(/^the total is|were answered 500/))
  })
})
