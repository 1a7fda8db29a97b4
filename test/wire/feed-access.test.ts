// Whoever loses access during a read of the feed gets no change from afterwards.
import { expect, test } from 'vitest'
import type { App } from '../../src/service/context/app.js'
import { openDatabase } from '../../src/store/open.js'
import { HeldDatabase } from '../held-database.js'
import { HttpClient } from '../http-client.js'
import { TrustingSessionCache } from '../mutants/accounts.js'
import { onEveryEngine, PASSWORD, preparedLocation, startService, USERNAME, type Engine } from '../targets.js'
import { asUser, expectError, openSession, withServer, type Answer } from './exchange.js'

const MODEL = 'crm.Contact'

/** Ends a session on another node while it reads the feed, then changes a record. Returns the response of the read. */
async function readDuringLogout(engine: Engine, mutant: (app: App) => App = (app) => app): Promise<Answer> {
  const location = await preparedLocation(engine)
  const other = await startService(engine, { location })
  const admin = await HttpClient.login(other.url, USERNAME, PASSWORD)
  const database = new HeldDatabase(
    await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 }),
  )
  const held = await startService(engine, { location, database })
  const answer = await withServer({ ...held, app: mutant(held.app) }, {}, async (url) => {
    const cookie = await openSession(url)
    const reader = asUser(url, cookie)
    const { seq: since } = await admin.find(MODEL, { limit: 0 })
    expect((await reader.get('/ws/me')).status).toBe(200)
    const isAsked = database.hold()
    const reading = reader.get(`/ws/changes?since=${since}`)
    await isAsked
    await asUser(other.url, cookie).get('/logout')
    await admin.create(MODEL, { firstName: 'afterwards' })
    held.clock.letASecondPass()
    database.release()
    return reading
  })
  await held.close()
  await other.close()
  location.remove()
  return answer
}

onEveryEngine((engine) => {
  test('a session that ends during a read of the feed gets no change from afterwards', async () => {
    expectError(await readDuringLogout(engine), 401, 'unauthenticated')
  })

  test('the mutant that does not look up an ended session again is caught', async () => {
    const trusting = (app: App) => ({ ...app, sessionCache: new TrustingSessionCache() })
    const answer = await readDuringLogout(engine, trusting)
    expect([answer.status, answer.text.includes('afterwards')]).toEqual([200, true])
  })
})
