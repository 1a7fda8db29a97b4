// Two concurrent set-ups: exactly one creates the first administrator, whatever their order.
import { describe, expect, test } from 'vitest'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { ensureFirstAdmin } from '../../src/service/auth/accounts.js'
import { createApp } from '../../src/service/create-app.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { withOtherNewestUser } from '../mutants/accounts.js'
import { models } from '../models.js'
import { ENGINES, newLocation, PASSWORD, type Engine } from '../targets.js'
import { Interruption } from './interruption.js'

/** Runs a second set-up after a statement of the first; returns both results and the number of accounts. */
async function setUpTwice(engine: Engine, statement: string, { second = 'eve', change = same }: Change = {}) {
  const location = await newLocation(engine)
  const opened = await openDatabase(location.url, { poolSize: 6, statementTimeoutMs: 10_000 })
  const interruption = new Interruption()
  const app = await createApp({ database: opened, models })
  const first = { ...app, db: interruption.in(change(app.db)) }
  try {
    const made: boolean[] = []
    interruption.after(
      (sql) => sql.includes(statement),
      async () => made.push(await ensureFirstAdmin(app, second, `${PASSWORD} of another`)),
    )
    made.push(await ensureFirstAdmin(first, 'ada', PASSWORD))
    expect(interruption.isOver).toBe(true)
    const [accounts] = await app.db.reader.all(`select count(*) as "count" from "${USER_MODEL}"`)
    return { made, accounts: Number(accounts?.['count']) }
  } finally {
    await app.close()
    location.remove()
  }
}

interface Change {
  readonly second?: string
  readonly change?: (db: Database) => Database
}

function same(db: Database): Database {
  return db
}

const STATEMENTS = ['max("id")', 'r."admin" is true', 'u."username" = ?']
describe.each(ENGINES)('%s', (engine) => {
  test.each(STATEMENTS)(
    'a second set-up after %s does not create another administrator',
    async (statement) => {
      expect(await setUpTwice(engine, statement)).toEqual({ made: [true, false], accounts: 1 })
    },
  )

  test.each(STATEMENTS)(
    'a second set-up after %s does not take over the new administrator',
    async (statement) => {
      const made = await setUpTwice(engine, statement, { second: 'ada' })
      expect(made).toEqual({ made: [true, false], accounts: 1 })
    },
  )

  test('a mutant whose set-ups do not agree on the newest account is caught', async () => {
    const made = await setUpTwice(engine, 'r."admin" is true', { change: withOtherNewestUser })
    expect(made).toEqual({ made: [true, true], accounts: 2 })
  })
})
