import { describe, expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import * as mutants from '../mutants/records.js'
import { raceInProcess, type Race } from './race.js'

const ONE_IN_32: Race = { rounds: 8, writers: 32 }
const UNTIL_CAUGHT: Race = { rounds: 10, writers: 32 }

onEveryEngine((engine) => {
  test('of 32 equal concurrent updates exactly one succeeds, in 8 rounds', async () => {
    expect(await raceInProcess(engine, ONE_IN_32)).toEqual({
      successes: 8,
      conflicts: 8 * 31,
      violations: [],
    })
  })

  test('the mutant that reads, checks, then writes is caught', async () => {
    const { violations } = await raceInProcess(engine, UNTIL_CAUGHT, mutants.readCheckWrite)
    expect(violations).toContainEqual(expect.stringMatching(/updates succeeded, and the version is/))
  })
})

// SQLite runs one write transaction at a time: the version guard is a second safeguard there, and its loss does not show.
describe('postgres', () => {
  test('the mutant without the version guard is caught, by the unique index of the change log at the latest', async () => {
    const { violations } = await raceInProcess('postgres', UNTIL_CAUGHT, mutants.withoutVersionGuard)
    expect(violations).toContainEqual(expect.stringMatching(/answered 500/))
  })

  test('the mutant without the version guard and without that unique index loses updates', async () => {
    const { violations } = await raceInProcess(
      'postgres',
      UNTIL_CAUGHT,
      mutants.withoutVersionGuard,
      async (db) => {
        await db.transaction((tx) =>
          tx.run('alter table verso_log drop constraint verso_log_model_record_version_key'),
        )
      },
    )
    expect(violations).toContainEqual(expect.stringMatching(/was acknowledged, and is lost/))
  })
})
