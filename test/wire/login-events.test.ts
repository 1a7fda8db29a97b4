// The events of logins: no typed text, and not more events than a person can read.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { EVENT_MODEL } from '../../src/model/catalog/auth-models.js'
import { buildPairKey } from '../../src/service/auth/throttle.js'
import { USER_SYSTEM_MODEL } from '../../src/model/catalog/system-models.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { changesSince } from '../log.js'
import { onEveryEngine, startService, USERNAME, type Service } from '../targets.js'
import { asUser, credentials, login, openSession } from './exchange.js'

const WINDOW_MS = 60_000
const TYPED = 'my secret in the wrong field'

onEveryEngine((engine) => {
  let service: Service
  let since = 0

  beforeAll(async () => {
    service = await startService(engine, { http: { trustProxy: ['127.0.0.1'] } })
  })
  beforeEach(async () => {
    await service.app.db.transaction((tx) => tx.run('delete from verso_login_failure'))
    since = Math.max(0, ...(await events()).map(({ id }) => id))
  })
  afterAll(() => service.close())

  const events = async () => {
    const criteria = [{ fieldName: 'id', operator: '>', value: since }]
    const found = await recordsForPrincipal(service.app, SERVICE_PRINCIPAL).search(EVENT_MODEL, {
      data: { criteria },
      sortBy: ['id'],
      limit: 500,
    })
    return found.data
  }
  const kinds = async () => (await events()).map(({ kind }) => kind)
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const fail = (address: string, username = USERNAME) =>
    login(service.url, from(address), credentials(username, 'wrong'))
  const setCount = async (key: string, failures: number) =>
    service.app.db.transaction((tx) =>
      tx.run('insert into verso_login_failure (key, since_ms, failures) values (?, ?, ?)', [
        key,
        service.clock.now(),
        failures,
      ]),
    )

  test('a login and a logout are recorded with user and address; a logout without a session is not', async () => {
    const cookie = await openSession(service.url, from('10.0.0.1'))
    await asUser(service.url, cookie).get('/logout', from('10.0.0.2'))
    await asUser(service.url, cookie).get('/logout')
    expect(await events()).toMatchObject([
      { kind: 'login', user: { name: 'Ada' }, address: '10.0.0.1' },
      { kind: 'logout', user: { name: 'Ada' }, address: '10.0.0.2' },
    ])
  })

  describe('failed logins', () => {
    test('failed logins are recorded once a minute for each account and address', async () => {
      for (const username of [USERNAME, 'ADA', 'nobody', 'nobody']) await fail('10.0.0.1', username)
      await fail('10.0.0.2')
      service.clock.advance(WINDOW_MS)
      await fail('10.0.0.1')
      const noted = await events()
      expect(
        noted.map(({ kind, user, address }) => [kind, (user as { name?: string } | null)?.name, address]),
      ).toEqual([
        ['login-failed', 'Ada', '10.0.0.1'],
        ['login-failed', undefined, '10.0.0.1'],
        ['login-failed', 'Ada', '10.0.0.2'],
        ['login-failed', 'Ada', '10.0.0.1'],
      ])
    })

    test('a failed login is recorded without the typed user name', async () => {
      await fail('10.0.0.1', TYPED)
      await fail('10.0.0.2', 'typedpassword')
      expect(await kinds()).toEqual(['login-failed', 'login-failed'])
      const stored = JSON.stringify([await events(), await changesSince(service.app.db.reader, 0, 10_000)])
      expect([stored.includes(TYPED), stored.includes('typedpassword')]).toEqual([false, false])
    })

    test('failed logins of an address are not recorded after 30 failures in a minute', async () => {
      await setCount('10.0.0.1', 29)
      for (const username of ['first', 'second', 'third']) await fail('10.0.0.1', username)
      expect(await kinds()).toEqual(['login-failed'])
    })
  })

  test('rejected logins are recorded once a minute for each address, on all nodes together', async () => {
    await setCount(buildPairKey('ada', '10.0.0.1'), 30)
    await setCount(buildPairKey('ada', '10.0.0.2'), 30)
    const other = await startService(engine, {
      http: { trustProxy: ['127.0.0.1'] },
      location: service.location,
    })
    // Nodes whose clocks differ by more than a window would each start their own.
    other.clock.advance(service.clock.now() - other.clock.now())
    try {
      const tries = [service, other, service].flatMap(({ url }) =>
        ['10.0.0.1', '10.0.0.2'].map((address) => login(url, from(address))),
      )
      expect((await Promise.all(tries)).map(({ status }) => status)).toEqual([429, 429, 429, 429, 429, 429])
    } finally {
      await other.close()
    }
    const noted = await events()
    expect(noted.map(({ kind, address }) => [kind, address]).sort()).toEqual([
      ['login-refused', '10.0.0.1'],
      ['login-refused', '10.0.0.2'],
    ])
  })

  test('fifty concurrent logins change only lastLoginOn of the user, without a new version', async () => {
    const records = recordsForPrincipal(service.app, SERVICE_PRINCIPAL)
    const [{ id } = { id: 0 }] = (
      await records.search(USER_SYSTEM_MODEL.name, {
        data: { criteria: [{ fieldName: 'username', operator: '=', value: USERNAME }] },
      })
    ).data
    await login(service.url)
    const { lastLoginOn: before, ...rest } = await records.read(USER_SYSTEM_MODEL.name, id)
    service.clock.advance(1_000)
    const answers = await Promise.all(Array.from({ length: 50 }, () => login(service.url)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const { lastLoginOn: after, ...same } = await records.read(USER_SYSTEM_MODEL.name, id)
    expect(same).toEqual(rest)
    expect(Date.parse(String(after))).toBeGreaterThan(Date.parse(String(before)))
    expect(await kinds()).toEqual(Array.from({ length: 51 }, () => 'login'))
    const changed = (await changesSince(service.app.db.reader, 0, 10_000)).filter(
      ({ model }) => model === USER_SYSTEM_MODEL.name,
    )
    expect(changed).toHaveLength(1)
  })
})
