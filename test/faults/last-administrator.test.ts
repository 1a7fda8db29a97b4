// Two administrators disable each other concurrently: one of them stays.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { addUser, setUserDisabled } from '../../src/service/auth/accounts.js'
import { toUserIdentity } from '../../src/service/context/identity.js'
import type { App } from '../../src/service/context/app.js'
import { createApp } from '../../src/service/create-app.js'
import { recordsFor } from '../../src/service/records/records.js'
import { findCredentials, hasAdministrator } from '../../src/store/auth/accounts.js'
import { openDatabase } from '../../src/store/open.js'
import { withoutTurns } from '../mutants/accounts.js'
import { models } from '../models.js'
import { ENGINES, newLocation, PASSWORD, type DatabaseLocation } from '../targets.js'

const ROUNDS = 20
/** Not every round of a race is lost. */
const MAX_ROUNDS = 300
const NAMES = ['ada', 'bob'] as const

let locations: DatabaseLocation[] = []
beforeAll(() => {
  locations = []
})
afterAll(() => {
  for (const location of locations) location.remove()
})

async function openOn(engine: (typeof ENGINES)[number], isBroken: boolean): Promise<App> {
  const location = await newLocation(engine)
  locations.push(location)
  const db = await openDatabase(location.url, { poolSize: 6, statementTimeoutMs: 10_000 })
  const app = await createApp({ database: isBroken ? withoutTurns(db) : db, models })
  for (const username of NAMES) await addUser(app, { username, password: PASSWORD, roles: ['administrator'] })
  return app
}

/** Returns if an administrator is left. */
async function disableEachOther(app: App): Promise<boolean> {
  const users = await Promise.all(
    NAMES.map(async (name) => (await findCredentials(app.db.reader, name))?.user),
  )
  const [ada, bob] = users
  if (!ada || !bob) throw new Error('both are there')
  const disable = (by: typeof ada, { id, version }: typeof bob) =>
    recordsFor(app, toUserIdentity(by)).update(USER_MODEL, id, { version, disabled: true })
  await Promise.allSettled([disable(ada, bob), disable(bob, ada)])
  const isLeft = await hasAdministrator(app.db.reader)
  for (const name of NAMES) await setUserDisabled(app, name, false)
  return isLeft
}

describe.each(ENGINES)('%s', (engine) => {
  test('two administrators who disable each other concurrently never both succeed', async () => {
    const app = await openOn(engine, false)
    try {
      for (let round = 0; round < ROUNDS; round++) expect(await disableEachOther(app)).toBe(true)
    } finally {
      await app.close()
    }
  })
})

test('the mutant that does not serialize such changes loses the last administrator', async () => {
  // SQLite has one writer, so it always serializes them.
  const app = await openOn('postgres', true)
  try {
    let isLeft = true
    for (let round = 0; round < MAX_ROUNDS && isLeft; round++) isLeft = await disableEachOther(app)
    expect(isLeft).toBe(false)
  } finally {
    await app.close()
  }
})
