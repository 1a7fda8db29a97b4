// merge-race-nodes.all.test.ts runs this with more writers, and through several nodes.
import { describe, expect, test } from 'vitest'
import { forgettingChanges, writingAllFields } from '../mutants/merge.js'
import { onEveryEngine } from '../targets.js'
import * as mutants from '../mutants/records.js'
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
  test(`${SOME} writers merge one field each from the same version concurrently, and every change is kept`, async () => {
    expect(await mergeInProcess(engine, RACE)).toEqual(ALL_STAND)
  })

  test('the mutant merge that reads, checks, then writes is caught', async () => {
    const { violations } = await mergeInProcess(engine, UNTIL_CAUGHT, mutants.readCheckWrite)
    expect(violations).toContainEqual(expect.stringMatching(/^the total is|was given twice|were answered/))
  })

  test('the mutant merge that writes all fields is caught', async () => {
    const { violations } = await mergeInProcess(engine, UNTIL_CAUGHT, writingAllFields(WIDE, FIELDS))
    expect(violations).toContainEqual(expect.stringMatching(/was acknowledged, and is lost/))
  })

  test('of concurrent random merges, the accepted ones make up the record, and only clashes are rejected', async () => {
    expect(await onNodes(engine, {}, (nodes) => mergeAtRandom(nodes, ROUNDS))).toEqual([])
  })

  test('the mutant merge that ignores the changes of others is caught', async () => {
    const faults = await onNodes(engine, { mutant: forgettingChanges }, (nodes) =>
      mergeAtRandom(nodes, ROUNDS),
    )
    expect(faults).toContainEqual(expect.stringMatching(/^wrongly accepted/))
  })
})

// SQLite runs one write transaction at a time, so nobody can intervene.
describe('postgres', () => {
  test('the mutant merge without a row lock is caught', async () => {
    const { violations } = await mergeInProcess('postgres', UNTIL_CAUGHT, mutants.withoutRowLocks)
    expect(violations).toContainEqual(expect.stringMatching(/were answered 409/))
  })

  test('the mutant merge without a row lock and without a version guard is caught', async () => {
    const { violations } = await mergeInProcess('postgres', UNTIL_CAUGHT, (db) =>
      mutants.withoutRowLocks(mutants.withoutVersionGuard(db)),
    )
    expect(violations).toContainEqual(expect.stringMatching(/^the total is|were answered 500/))
  })
})
