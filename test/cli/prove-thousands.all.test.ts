// At least 2,000 successful updates and 2,000 conflicts without a lost update, also on a slow machine, which takes longer.
import { expect, inject, test } from 'vitest'
import type { Scoreboard } from '../../src/cli/prove/scoreboard.js'
import { createDatabase } from '../postgres.js'
import { cleanUpAfterwards, verso } from './program.js'

cleanUpAfterwards()

const COUNT = 2_000

test.each(['SQLite', 'three nodes of PostgreSQL'])(
  'verso prove finds no lost update among thousands of updates and conflicts on %s',
  async (target) => {
    const db =
      target === 'SQLite' ? [] : ['--db', await createDatabase(inject('postgresUrl')), '--nodes', '3']
    // Half of the writes run in their own transaction, half of them in group commits.
    const flags = ['--seconds', '8', '--at-least', String(COUNT), '--keyed', '0.5', '--json']
    const { code, stdout, stderr } = await verso(['prove', ...flags, ...db])
    const score = JSON.parse(stdout || '{}') as Scoreboard
    expect(score.violations, stderr).toEqual([])
    expect(score.nodes).toBe(target === 'SQLite' ? 1 : 3)
    expect(score.updates).toBeGreaterThanOrEqual(COUNT)
    expect(score.conflicts).toBeGreaterThanOrEqual(COUNT)
    expect(code).toBe(0)
  },
)
