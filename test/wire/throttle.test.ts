import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { buildPairKey } from '../../src/service/auth/throttle.js'
import { onEngineOfTier, startService, type Service } from '../targets.js'
import { credentials, expectError, login, withServer, type Answer } from './exchange.js'

const VICTIM = 'ada'
const WINDOW_MS = 60_000
/** Lets the tests choose their address. */
const TRUSTING = { http: { trustProxy: ['127.0.0.1'] } }

onEngineOfTier((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine, TRUSTING)
  })
  beforeEach(() => service.app.db.transaction((tx) => tx.run('delete from verso_login_failure')))
  afterAll(() => service.close())

  const from = (address: string) => ({ 'x-forwarded-for': address })
  const wrong = credentials(VICTIM, 'wrong')
  /** Concurrent, because each failure in sequence would be delayed more than the one before. */
  const fail = (
    count: number,
    address: string,
    body = wrong,
    { url }: Pick<Service, 'url'> = service,
  ): Promise<Answer[]> => Promise.all(Array.from({ length: count }, () => login(url, from(address), body)))
  const statusesOf = (answers: readonly Answer[]) => answers.map((answer) => answer.status).sort()
  const countsOf = async () => {
    const rows = await service.app.db.reader.all('select key, failures from verso_login_failure order by key')
    return Object.fromEntries(rows.map((row) => [String(row['key']), row['failures']]))
  }
  const setCount = async (key: string, failures: number) =>
    service.app.db.transaction((tx) =>
      tx.run('insert into verso_login_failure (key, since_ms, failures) values (?, ?, ?)', [
        key,
        service.clock.now(),
        failures,
      ]),
    )

  test('failed logins are counted by account and address, and by address; successful ones are not', async () => {
    await fail(3, '10.0.0.1')
    await fail(1, '10.0.0.1', credentials('nobody'))
    await fail(1, '10.0.0.2', '{}')
    expect((await login(service.url, from('10.0.0.1'))).status).toBe(200)
    expect(await countsOf()).toEqual({
      [buildPairKey('ada', '10.0.0.1')]: 3,
      [buildPairKey('nobody', '10.0.0.1')]: 1,
      '10.0.0.1': 4,
      [buildPairKey('', '10.0.0.2')]: 1,
      '10.0.0.2': 1,
    })
  })

  test('a failed login is delayed from the sixth on, a successful one is not', async () => {
    await setCount(buildPairKey('ada', '10.0.0.1'), 15)
    const began = performance.now()
    const failed = await login(service.url, from('10.0.0.1'), wrong)
    expect(failed.status).toBe(401)
    // A timer may fire a millisecond early.
    expect(performance.now() - began).toBeGreaterThan(498)
    expect((await countsOf())[buildPairKey('ada', '10.0.0.1')]).toBe(16)
    expect((await login(service.url, from('10.0.0.1'))).status).toBe(200)
  })

  test('the fifth failed login is answered immediately, the sixth is delayed', async () => {
    const times: Record<4 | 5, number[]> = { 4: [], 5: [] }
    for (let round = 0; round < 9; round++) {
      for (const earlier of [4, 5] as const) {
        await setCount(buildPairKey('ada', `10.${earlier}.0.${round}`), earlier)
        const began = performance.now()
        expect((await login(service.url, from(`10.${earlier}.0.${round}`), wrong)).status).toBe(401)
        times[earlier].push(performance.now() - began)
      }
    }
    // The delay is 50 ms; half of it is far more than the difference between the fastest equal requests on a busy machine.
    expect(Math.min(...times[5]) - Math.min(...times[4])).toBeGreaterThan(25)
  })

  test('one address may fail 300 times a minute over all accounts, then it is 429', async () => {
    await setCount('10.0.0.9', 299)
    expect((await login(service.url, from('10.0.0.9'), credentials('first', 'wrong'))).status).toBe(401)
    expectError(await login(service.url, from('10.0.0.9'), credentials('second', 'wrong')), 429, 'too-many')
    expectError(await login(service.url, from('10.0.0.9')), 429, 'too-many')
    expect((await login(service.url, from('10.0.0.8'))).status).toBe(200)
  })

  test('successful concurrent logins are not counted as failures', async () => {
    const answers = await fail(50, '10.0.0.1', credentials(VICTIM))
    expect(new Set(statusesOf(answers))).toEqual(new Set([200]))
    expect(await countsOf()).toEqual({})
  })

  test('in the demo a login is never 429', async () => {
    await setCount(buildPairKey('ada', '10.0.0.1'), 1_000)
    await setCount('10.0.0.1', 10_000)
    const demo = await startService(engine, {
      ...TRUSTING,
      location: service.location,
      settings: { isDemo: true },
    })
    try {
      expect(statusesOf(await fail(3, '10.0.0.1', wrong, demo))).toEqual([401, 401, 401])
      expect((await login(demo.url, from('10.0.0.1'))).status).toBe(200)
    } finally {
      await demo.close()
    }
  })

  test('two nodes count failed logins together', async () => {
    const other = await startService(engine, { ...TRUSTING, location: service.location })
    try {
      await setCount(buildPairKey('ada', '10.0.0.1'), 26)
      const answers = await Promise.all([fail(3, '10.0.0.1'), fail(3, '10.0.0.1', wrong, other)])
      expect(statusesOf(answers.flat())).toEqual([401, 401, 401, 401, 429, 429])
      expect((await countsOf())[buildPairKey('ada', '10.0.0.1')]).toBeGreaterThanOrEqual(30)
    } finally {
      await other.close()
    }
  })

  describe('addresses of failed logins', () => {
    test('failed logins count for the address of the connection if the proxy is not trusted', async () => {
      await withServer(service, {}, async (url) => {
        await fail(1, '10.0.0.1', wrong, { url })
        await fail(1, '10.0.0.2', wrong, { url })
      })
      expect(await countsOf()).toEqual({ [buildPairKey('ada', '127.0.0.1')]: 2, '127.0.0.1': 2 })
    })

    test('invented addresses do not bypass the limit of failed logins', async () => {
      await setCount(buildPairKey('ada', '127.0.0.1'), 28)
      await withServer(service, {}, async (url) => {
        const answers = await Promise.all(
          Array.from({ length: 6 }, (_, index) => {
            const made = `10.9.9.${index}`
            const headers = { ...from(made), forwarded: `for=${made}`, 'x-real-ip': made, 'client-ip': made }
            const username = ['ada', 'ADA', 'aDa'][index % 3]
            const body = JSON.stringify({
              username,
              password: `wrong ${index}`,
              ip: made,
              [`key${index}`]: made,
            })
            return login(url, headers, body)
          }),
        )
        expect(statusesOf(answers)).toEqual([401, 401, 429, 429, 429, 429])
      })
    })

    test('addresses of one IPv6 network count as one, and an IPv4 address counts as one in both spellings', async () => {
      await fail(1, '2001:db8:1:2:3:4:5:6')
      await fail(1, '2001:db8:1:2::1')
      await fail(1, '2001:db8:1:3::1')
      await fail(1, '::ffff:10.0.0.1')
      await fail(1, '10.0.0.1')
      expect(await countsOf()).toEqual({
        [buildPairKey('ada', '2001:db8:1:2::/64')]: 2,
        '2001:db8:1:2::/64': 2,
        [buildPairKey('ada', '2001:db8:1:3::/64')]: 1,
        '2001:db8:1:3::/64': 1,
        [buildPairKey('ada', '10.0.0.1')]: 2,
        '10.0.0.1': 2,
      })
    })

    test('fields of the body do not change the address that counts', async () => {
      for (const ip of ['1.1.1.1', '2.2.2.2']) {
        await fail(1, '10.0.0.1', JSON.stringify({ username: VICTIM, password: 'wrong', ip, address: ip }))
      }
      expect(await countsOf()).toEqual({ [buildPairKey('ada', '10.0.0.1')]: 2, '10.0.0.1': 2 })
    })
  })

  test('spellings of one user name count as one', async () => {
    for (const username of ['ada', 'ADA', 'Ada']) await fail(1, '10.0.0.1', credentials(username, 'wrong'))
    expect(await countsOf()).toEqual({ [buildPairKey('ada', '10.0.0.1')]: 3, '10.0.0.1': 3 })
    for (const username of ['zo\u00e9', 'zoe\u0301', 'ZO\u00c9', 'ZOE\u0301'])
      await fail(1, '10.0.0.2', credentials(username, 'wrong'))
    expect((await countsOf())[buildPairKey('zo\u00e9', '10.0.0.2')]).toBe(4)
  })

  test('after 30 failures in a minute a login is 429 with Retry-After, even with the right password', async () => {
    await setCount(buildPairKey('ada', '10.0.0.1'), 27)
    const answers = await fail(5, '10.0.0.1')
    expect(statusesOf(answers)).toEqual([401, 401, 401, 429, 429])
    expect((await countsOf())[buildPairKey('ada', '10.0.0.1')]).toBeGreaterThanOrEqual(30)
    const rejected = await login(service.url, from('10.0.0.1'))
    expectError(rejected, 429, 'too-many')
    const seconds = Number(rejected.headers['retry-after'])
    expect(seconds).toBeGreaterThanOrEqual(1)
    expect(seconds).toBeLessThanOrEqual(60)

    // Nobody else is locked out: neither the account at other addresses, nor other accounts at this address.
    expect((await login(service.url, from('10.0.0.2'))).status).toBe(200)
    expect((await login(service.url, from('10.0.0.1'), credentials('nobody'))).status).toBe(401)

    service.clock.advance(WINDOW_MS)
    expect((await login(service.url, from('10.0.0.1'))).status).toBe(200)
  })
})
