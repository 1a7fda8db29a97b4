import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import {
  asUser,
  credentials,
  envelope,
  expectError,
  only,
  openSession,
  pageOf,
  type Answer,
  type User,
} from './exchange.js'

const CONTACT = 'crm.Contact'
const DAY_MS = 24 * 60 * 60_000

onEveryEngine((engine) => {
  let service: Service
  let user: User
  let keys = 0

  beforeAll(async () => {
    service = await startService(engine)
    user = asUser(service.url, await openSession(service.url))
  })
  afterAll(() => service.close())

  const newKey = () => ({ 'idempotency-key': `key-${++keys}` })
  const total = async () => pageOf(await user.get(`/ws/rest/${CONTACT}?limit=0`)).total
  const isReplay = (answer: Answer) => answer.headers['idempotency-replayed'] === 'true'

  test('a repeated create answers the first response again, and creates no second record', async () => {
    const key = newKey()
    const before = await total()
    const first = await user.create(CONTACT, { firstName: 'Once', phones: { b: [1, 2], a: null } }, key)
    const second = await user.create(CONTACT, { phones: { a: null, b: [1, 2] }, firstName: 'Once' }, key)
    expect([first.status, isReplay(first)]).toEqual([200, false])
    expect([second.status, isReplay(second)]).toEqual([200, true])
    expect([second.text, second.headers.etag]).toEqual([first.text, first.headers.etag])
    expect(await total()).toBe(before + 1)
  })

  test('a repeat with another secret value is rejected with key-reused', async () => {
    const key = newKey()
    const first = await user.create(CONTACT, { firstName: 'S', pin: 'one' }, key)
    const again = await user.create(CONTACT, { pin: 'one', firstName: 'S' }, key)
    expect([first.status, again.status, isReplay(again)]).toEqual([200, 200, true])
    expectError(await user.create(CONTACT, { firstName: 'S', pin: 'two' }, key), 422, 'key-reused')
  })

  test('a repeated update is answered again, not rejected as stale', async () => {
    const { id } = only(await user.create(CONTACT, {}))
    const key = newKey()
    const first = await user.ask('POST', `/ws/rest/${CONTACT}/${id}`, { version: 0, firstName: 'A' }, key)
    const second = await user.ask('POST', `/ws/rest/${CONTACT}/${id}`, { version: 0, firstName: 'A' }, key)
    expect([first.status, second.status, second.text, isReplay(second)]).toEqual([200, 200, first.text, true])
    expect(only(await user.get(`/ws/rest/${CONTACT}/${id}`))['version']).toBe(1)
  })

  test('a repeated delete is answered again, not rejected as missing', async () => {
    const { id } = only(await user.create(CONTACT, {}))
    const key = newKey()
    const first = await user.ask('DELETE', `/ws/rest/${CONTACT}/${id}`, undefined, key)
    const second = await user.ask('DELETE', `/ws/rest/${CONTACT}/${id}`, undefined, key)
    expect([first.text, second.text, isReplay(second)]).toEqual([
      `{"status":0,"data":[${id}]}`,
      first.text,
      true,
    ])
  })

  test('another request with the same key is rejected with key-reused', async () => {
    const key = newKey()
    const { id } = only(await user.create(CONTACT, { firstName: 'A' }, key))
    const path = `/ws/rest/${CONTACT}/${id}`
    const others = [
      await user.create(CONTACT, { firstName: 'B' }, key),
      await user.create(CONTACT, { firstName: 'A', lastName: null }, key),
      await user.create('test.Everything', {}, key),
      await user.ask('POST', path, { version: 0, firstName: 'A' }, key),
      await user.ask('DELETE', path, undefined, key),
    ]
    for (const answer of others) expectError(answer, 422, 'key-reused')
    expect(others.map((answer) => envelope(answer).status)).toEqual([-1, -1, -1, -1, -1])
    expect(only(await user.get(path))).toMatchObject({ version: 0, firstName: 'A' })
  })

  test('twelve equal concurrent creates with one key create one record', async () => {
    const key = newKey()
    const before = await total()
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => user.create(CONTACT, { firstName: 'Twelve' }, key)),
    )
    expect(answers.map((answer) => answer.status)).toEqual(Array(12).fill(200))
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1)
    expect(answers.filter(isReplay)).toHaveLength(11)
    expect(await total()).toBe(before + 1)
  })

  test('a rejected request leaves its key unused', async () => {
    const key = newKey()
    expectError(await user.create(CONTACT, { firstName: 1 }, key), 422, 'invalid')
    expectError(await user.create('crm.Nothing', {}, key), 404, 'unknown-model')
    expectError(await user.ask('DELETE', `/ws/rest/${CONTACT}/999999`, undefined, key), 404, 'not-found')
    const { id } = only(await user.create(CONTACT, {}))
    expectError(await user.ask('POST', `/ws/rest/${CONTACT}/${id}`, { version: 7 }, key), 409, 'conflict')
    const answer = await user.create(CONTACT, { firstName: 'Free' }, key)
    expect([answer.status, isReplay(answer)]).toEqual([200, false])
  })

  test('two users can use the same key independently', async () => {
    await addUser(service.app, { username: 'bob', password: 'a password for bob', roles: ['administrator'] })
    const bob = asUser(
      service.url,
      await openSession(service.url, {}, credentials('bob', 'a password for bob')),
    )
    const key = newKey()
    const mine = only(await user.create(CONTACT, { firstName: 'Mine' }, key))
    const answer = await bob.create(CONTACT, { firstName: 'Bob’s' }, key)
    expect(isReplay(answer)).toBe(false)
    expect(only(answer).id).not.toBe(mine.id)
  })

  test('a key is remembered across sessions for a day', async () => {
    const key = newKey()
    const first = await user.create(CONTACT, { firstName: 'Day' }, key)
    service.clock.advance(DAY_MS - 60_000)
    user = asUser(service.url, await openSession(service.url))
    expect(isReplay(await user.create(CONTACT, { firstName: 'Day' }, key))).toBe(true)
    service.clock.advance(60_001)
    const fresh = await user.create(CONTACT, { firstName: 'Day' }, key)
    expect([fresh.status, isReplay(fresh)]).toEqual([200, false])
    expect(only(fresh).id).not.toBe(only(first).id)
  })

  test('an Idempotency-Key has 1 to 255 printable ASCII characters', async () => {
    for (const key of ['k', 'two words', 'x'.repeat(255), '{"json": "too"}', String.raw`\"'--;%`]) {
      expect((await user.create(CONTACT, {}, { 'idempotency-key': key })).status, key).toBe(200)
    }
    for (const key of ['', 'x'.repeat(256), 'caf\u00e9', 'a\tb']) {
      expectError(await user.create(CONTACT, {}, { 'idempotency-key': key }), 400, 'bad-request')
    }
  })
})
