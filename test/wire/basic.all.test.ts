// A user name and a password with every request (Basic): as safe as a login, and as fast as a session.
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { hash } from '@node-rs/argon2'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { USER_SYSTEM_MODEL } from '../../src/model/catalog/system-models.js'
import { buildPairKey } from '../../src/service/auth/throttle.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { addUser, changePassword, setUserDisabled } from '../../src/service/auth/accounts.js'
import { removeRecord } from '../../src/service/records/remove.js'
import { findCredentials } from '../../src/store/auth/accounts.js'
import { findLoginFailures } from '../../src/store/auth/login-failures.js'
import { startProcessorClock } from '../processor-time.js'
import { newLocation, onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import {
  credentials,
  envelope,
  expectError,
  JSON_BODY,
  json,
  login,
  only,
  send,
  withServer,
} from './exchange.js'
import { createContext } from '../../src/service/context/context.js'

const CONTACTS = '/ws/rest/crm.Contact'
const REMEMBERED_MS = 5 * 60_000
/** A hash that takes much longer than everything else. */
const SLOW = { memoryCost: 19_456, timeCost: 40, parallelism: 1 }

const encoded = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
const basic = (username: string = USERNAME, password: string = PASSWORD) => ({
  authorization: encoded(`${username}:${password}`),
})

onEveryEngine((engine) => {
  let service: Service
  let users = 0
  beforeAll(async () => {
    service = await startService(engine, { http: { basicAuth: true, trustProxy: ['127.0.0.1'] } })
  })
  beforeEach(() => service.app.db.transaction((tx) => tx.run('delete from verso_login_failure')))
  afterAll(() => service.close())

  const get = (headers: object, url = service.url) =>
    send(url, { path: `${CONTACTS}?limit=1`, headers: { ...headers } })
  const newUser = async (password = 'a password of theirs') => {
    const username = `user${++users}`
    const id = await addUser(service.app, { username, password, roles: ['editor'] })
    return { id, username, password }
  }
  /** CPU time, which other processes do not change much. The service runs in this process. */
  const timeOf = async (work: () => Promise<unknown>) => {
    const readMs = startProcessorClock()
    await work()
    return readMs()
  }
  const slowUser = async () => {
    const user = await newUser()
    const slow = await hash(user.password, SLOW)
    await service.app.db.transaction((tx) =>
      tx.run('update "verso.auth.User" set "password" = ? where "id" = ?', [slow, user.id]),
    )
    return user
  }

  test('Basic credentials replace a session for reads, writes and public routes', async () => {
    expect((await get(basic())).status).toBe(200)
    const body = JSON.stringify({ data: { firstName: 'By Basic' } })
    const made = await send(service.url, {
      method: 'PUT',
      path: CONTACTS,
      headers: { ...JSON_BODY, ...basic() },
      body,
    })
    expect(only(made)).toMatchObject({ createdBy: { name: 'Ada' } })
    const info = await send(service.url, { path: '/ws/public/app/info', headers: basic() })
    expect(json(info)).toMatchObject({ user: { login: USERNAME } })
    expect(made.headers['set-cookie']).toBeUndefined()
    expect((await get({ authorization: basic().authorization.replace('Basic', 'bAsIc  ') })).status).toBe(200)
    expect((await get(basic('ADA'))).status).toBe(200)
  })

  test('a login accepts Basic credentials, unless its body has credentials', async () => {
    const answer = await send(service.url, { method: 'POST', path: '/callback', headers: basic() })
    expect([answer.status, answer.headers['set-cookie']?.length]).toEqual([200, 2])
    expectError(await login(service.url, basic(), credentials(USERNAME, 'wrong')), 401, 'unauthenticated')
  })

  test('without --basic-auth, Basic credentials are ignored, right or wrong', async () => {
    await withServer(service, {}, async (url) => {
      for (const headers of [basic(), basic(USERNAME, 'wrong')]) {
        const answer = await get(headers, url)
        expectError(answer, 401, 'unauthenticated')
        expect(envelope(answer).data.message).toMatch(/^Not logged in: /)
      }
      const posted = await send(url, { method: 'POST', path: '/callback', headers: basic() })
      expect(posted.status).toBe(401)
    })
    const [row] = await service.app.db.reader.all(
      'select count(*) as "n" from verso_login_failure where key = ?',
      [buildPairKey('ada', '127.0.0.1')],
    )
    expect(Number(row?.['n'])).toBe(0)
  })

  test('invalid Basic credentials are 401, and reveal no more than a login does', async () => {
    const texts = [
      '',
      ':',
      `${USERNAME}:`,
      `:${PASSWORD}`,
      USERNAME,
      `${USERNAME}:wrong`,
      `nobody:${PASSWORD}`,
      '\0:\0',
    ]
    const headers = [
      ...texts.map(encoded),
      ...[
        'Basic',
        'Basic ',
        'Basic %%%',
        'Basic =',
        'Bearer abc',
        'basic\tabc',
        `Basic ${'A'.repeat(8_000)}`,
      ],
      encoded(`${USERNAME}:${'x'.repeat(5_000)}`),
      encoded(`${USERNAME}:${PASSWORD} `),
    ]
    for (const [index, authorization] of headers.entries())
      expectError(await get({ authorization, 'x-forwarded-for': `10.1.0.${index}` }), 401, 'unauthenticated')
    const [wrong, nobody] = [await get(basic(USERNAME, 'wrong')), await get(basic('nobody'))]
    expect(envelope(wrong).data.message).toBe('Wrong user name or password')
    expect(envelope(nobody).data.message).toBe(envelope(wrong).data.message)
    // Wrong credentials are not rescued by a valid cookie.
    const cookie = (await login(service.url)).headers['set-cookie']?.[0]?.split(';')[0]
    expect((await get({ ...basic(USERNAME, 'wrong'), cookie })).status).toBe(401)
  })

  test('a cross-site write with Basic credentials is rejected with 403', async () => {
    for (const site of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }])
      for (const method of ['PUT', 'POST', 'DELETE']) {
        const target = method === 'DELETE' ? `${CONTACTS}/1` : CONTACTS
        const headers = { ...JSON_BODY, ...basic(), ...site }
        const answer = await send(service.url, { method, path: target, headers, body: '{"data":{}}' })
        expectError(answer, 403, 'forbidden')
      }
  })

  test('wrong Basic credentials count as failed logins, and are 429 after 30 failures', async () => {
    const from = (address: string) => ({ 'x-forwarded-for': address })
    const { username, password } = await newUser()
    const known = await newUser()
    expect((await get({ ...basic(known.username, known.password), ...from('10.9.0.1') })).status).toBe(200)
    const guess = (index: number) => get({ ...basic(username, `guess ${index}`), ...from('10.9.0.1') })
    const logins = await Promise.all(
      Array.from({ length: 10 }, () => login(service.url, from('10.9.0.1'), credentials(username, 'wrong'))),
    )
    const guesses = await Promise.all(Array.from({ length: 25 }, (_, index) => guess(index)))
    const statuses = [...logins, ...guesses].map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).toHaveLength(30)
    expect(statuses.filter((status) => status === 429)).toHaveLength(5)
    const right = { ...basic(username, password), ...from('10.9.0.1') }
    const rejected = await get(right)
    expectError(rejected, 429, 'too-many')
    expect(Number(rejected.headers['retry-after'])).toBeGreaterThan(0)
    expect((await get({ ...right, ...from('10.9.0.2') })).status).toBe(200)
    // A user who was verified before, and all others at that address, still get in.
    expect((await get(right)).status).toBe(200)
    expect((await get({ ...basic(known.username, known.password), ...from('10.9.0.1') })).status).toBe(200)
  })

  test('concurrent unknown user names with the same password are counted one by one', async () => {
    const names = ['nobody.1', 'nobody.2', 'NOBODY.2', 'nobody.3']
    const from = { 'x-forwarded-for': '10.8.0.1' }
    const answers = await Promise.all(names.map((name) => get({ ...basic(name, 'the same'), ...from })))
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401])
    const counted = await findLoginFailures(service.app.db.reader, '10.8.0.1', 0)
    // Two spellings of one name share one check if they arrive together.
    expect(counted?.failures).toBeGreaterThanOrEqual(3)
  })

  test('a new password takes effect for Basic immediately', async () => {
    const { username, password } = await newUser()
    expect((await get(basic(username, password))).status).toBe(200)
    await changePassword(service.app, username, 'another password')
    expect((await get(basic(username, password))).status).toBe(401)
    expect((await get(basic(username, 'another password'))).status).toBe(200)
    expect((await get(basic(username, password))).status).toBe(401)
  })

  test('a disabled or deleted account loses Basic access immediately', async () => {
    const { id, username, password } = await newUser()
    expect((await get(basic(username, password))).status).toBe(200)
    await setUserDisabled(service.app, username, true)
    expect((await get(basic(username, password))).status).toBe(401)
    await setUserDisabled(service.app, username, false)
    expect((await get(basic(username, password))).status).toBe(200)
    await removeRecord(createContext(service.app, SERVICE_PRINCIPAL), USER_SYSTEM_MODEL, id)
    expect(await findCredentials(service.app.db.reader, username)).toBeUndefined()
    expect((await get(basic(username, password))).status).toBe(401)
    // A new account of the same name is another account.
    await addUser(service.app, { username, password: 'of somebody else', roles: ['editor'] })
    expect((await get(basic(username, password))).status).toBe(401)
  })

  test('concurrent and later Basic requests share one password hash until it expires from the cache', async () => {
    const { username, password } = await slowUser()
    const ask = async () => {
      expect((await get(basic(username, password))).status).toBe(200)
    }
    const crowdMs = await timeOf(() => Promise.all(Array.from({ length: 10 }, ask)))
    const loginMs = await timeOf(() => login(service.url, {}, credentials(username, password)))
    expect(crowdMs, 'ten at once against one login').toBeLessThan(3 * loginMs)
    const laterMs = await timeOf(async () => {
      for (let count = 0; count < 10; count++) await ask()
    })
    expect(laterMs, 'ten more against one login').toBeLessThan(loginMs)
    service.clock.advance(REMEMBERED_MS + 1)
    expect(await timeOf(ask), 'one when it is forgotten').toBeGreaterThan(loginMs / 3)
    expect(await timeOf(ask)).toBeLessThan(loginMs / 2)
  })

  test('a wrong password is hashed for every request: failures are not cached', async () => {
    const { username } = await slowUser()
    const ask = () => get(basic(username, 'wrong'))
    const loginMs = await timeOf(() => login(service.url, {}, credentials(username, 'wrong')))
    expect(await timeOf(ask)).toBeGreaterThan(loginMs / 3)
    expect(await timeOf(ask)).toBeGreaterThan(loginMs / 3)
  })
})

describe('credentials in memory', () => {
  test('a heap snapshot contains neither the password nor the Authorization header', async () => {
    expect(await textsInHeap()).toEqual({ model: true, password: false, header: false })
  })

  test('the mutant that keeps the Authorization header is caught', async () => {
    expect(await textsInHeap('keeping')).toEqual({ model: true, password: false, header: true })
  })
})

/** Searches a heap snapshot of a service for credentials that it received some requests ago; a parser may still hold the latest ones. */
async function textsInHeap(mutant = ''): Promise<object> {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-heap-'))
  const location = await newLocation('sqlite')
  const password = `heap-${randomBytes(16).toString('hex')}`
  const first = await startService('sqlite', { location })
  await addUser(first.app, { username: 'heap', password, roles: ['editor'] })
  await first.close()
  const file = path.join(folder, 'verso.heapsnapshot')
  const script = fileURLToPath(new URL('heap-process.mjs', import.meta.url))
  const child = fork(script, [location.url, file, mutant], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const told = () =>
    new Promise<string>((resolve) => child.once('message', (message) => resolve(message as string)))
  try {
    const url = await told()
    const ask = (headers: object) =>
      send(url, { path: CONTACTS, headers: { ...headers, connection: 'close' } })
    const header = basic('heap', password)
    for (let count = 0; count < 3; count++) expect((await ask(header)).status).toBe(200)
    for (let count = 0; count < 3; count++) expect((await ask(basic('x', 'y'))).status).toBe(401)
    for (let count = 0; count < 50; count++) await ask({})
    const done = told()
    child.send('snapshot')
    await done
    const snapshot = readFileSync(file)
    return {
      model: snapshot.includes('verso.auth.User'),
      password: snapshot.includes(password),
      header: snapshot.includes(header.authorization.slice('Basic '.length)),
    }
  } finally {
    child.disconnect()
    rmSync(folder, { recursive: true, force: true })
    location.remove()
  }
}
