import { describe, expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import * as twins from '../twins.js'
import { raceInProcess, raceOfTwoProcesses, type Race } from './race.js'

const ONE_IN_32: Race = { rounds: 30, writers: 32 }
const UNTIL_CAUGHT: Race = { rounds: 10, writers: 32 }

onEveryEngine((engine) => {
  test('of 32 equal updates at once exactly one succeeds, 30 times', async () => {
    expect(await raceInProcess(engine, ONE_IN_32)).toEqual({
      successes: 30,
      conflicts: 30 * 31,
      violations: [],
    })
  })

  test('of 32 equal updates through two processes exactly one succeeds, 15 times', async () => {
    const result = await raceOfTwoProcesses(engine, { rounds: 15, writers: 32 })
    expect(result).toEqual({ successes: 15, conflicts: 15 * 31, violations: [] })
  })

  test('a store that reads, checks and writes is caught', async () => {
    const { violations } = await raceInProcess(engine, UNTIL_CAUGHT, twins.readCheckWrite)
    expect(violations).toContainEqual(expect.stringMatching(/updates succeeded, and the version is/))
  })
})

// One transaction after the other on SQLite: there the guard is the second lock, and its loss does not show.
describe('postgres', () => {
  test('a store without the guard in its update is caught, by the Log at the latest', async () => {
    const { violations } = await raceInProcess('postgres', UNTIL_CAUGHT, twins.withoutVersionGuard)
    expect(violations).toContainEqual(expect.stringMatching(/answered 500/))
  })

  test('without the guard, and without the Log to refuse a second Change for a version, updates are lost', async () => {
    const { violations } = await raceInProcess(
      'postgres',
      UNTIL_CAUGHT,
      twins.withoutVersionGuard,
      async (db) => {
        await db.transaction((tx) =>
          tx.run('alter table verso_log drop constraint verso_log_model_record_version_key'),
        )
      },
    )
    expect(violations).toContainEqual(expect.stringMatching(/was acknowledged, and is lost/))
  })
})
