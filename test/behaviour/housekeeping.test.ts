import { afterAll, beforeAll, expect, test } from 'vitest'
import { removeExpired } from '../../src/service/maintenance/housekeeping.js'
import { HttpClient } from '../http-client.js'
import { onEveryEngine, PASSWORD, catchError, startService, USERNAME, type Service } from '../targets.js'

const MINUTE_MS = 60_000
const TABLES = ['verso_session', 'verso_idempotency', 'verso_login_failure'] as const

onEveryEngine((engine) => {
  let service: Service
  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  const counts = async () => {
    const rows = TABLES.map((table) => service.app.db.reader.all(`select count(*) as "n" from ${table}`))
    return (await Promise.all(rows)).map(([row]) => row?.['n'])
  }

  test('housekeeping deletes expired sessions, idempotency keys and login failures, and keeps the others', async () => {
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    await client.create('crm.Contact', {}, { idempotencyKey: 'a' })
    await catchError(HttpClient.login(service.url, USERNAME, 'wrong'))
    // A failed login counts for the account and for the address.
    expect(await counts()).toEqual([1, 1, 2])
    await removeExpired(service.app)
    expect(await counts()).toEqual([1, 1, 2])
    service.clock.advance(2 * MINUTE_MS)
    await removeExpired(service.app)
    expect(await counts()).toEqual([1, 1, 0])
    service.clock.advance(60 * MINUTE_MS)
    await removeExpired(service.app)
    expect(await counts()).toEqual([0, 1, 0])
    service.clock.advance(24 * 60 * MINUTE_MS)
    await removeExpired(service.app)
    expect(await counts()).toEqual([0, 0, 0])
  })
})
