// Sessions of the client in Node, where each client keeps its own cookie.
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  connect,
  ConflictError,
  InvalidError,
  NotFoundError,
  RequestError,
  UnauthenticatedError,
  type ConnectOptions,
  type WireRecord,
} from 'verso-records/client'
import { addUser } from '../../../src/service/auth/accounts.js'
import { importMutantClient, READING_BY_OFFSET, REPEATING_CREDENTIALS } from '../../mutants/client-code.js'
import { mergeAlways, shareSession } from '../../mutants/client.js'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../../targets.js'
import { rejection } from './claims.js'

const CONTACT = 'crm.Contact'

/** Counts the requests of a client by path. */
function watchFetch(): { readonly count: (path: string) => number; readonly options: ConnectOptions } {
  const paths: string[] = []
  return {
    count: (path) => paths.filter((each) => each === path).length,
    options: {
      fetch: async (input, init) => {
        paths.push(new URL(input instanceof Request ? input.url : input).pathname)
        return fetch(input, init)
      },
    },
  }
}

onEngineOfTier((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine)
    for (const username of ['eve', 'bob'])
      await addUser(service.app, { username, name: username, password: PASSWORD, roles: ['administrator'] })
  })
  afterAll(() => service.close())

  const open = (username = USERNAME, options?: ConnectOptions, connectClient = connect) =>
    connectClient(service.url, { username, password: PASSWORD }, options)

  /** Ends all sessions of a user, as an administrator can. */
  async function endSessions(username: string): Promise<void> {
    const admin = open()
    const { data } = await admin.model('verso.auth.User').find({ filter: { username } })
    await admin.request('DELETE', `/ws/users/${data[0]?.id ?? 0}/sessions`)
  }

  /** Two users create records at the same time. Returns how many have the wrong creator. */
  async function countMixedRecords(options?: ConnectOptions): Promise<number> {
    const users = ['eve', 'bob'].map((username) => ({ username, verso: open(username, options) }))
    await Promise.all(users.map(({ verso }) => verso.login()))
    const records = Array.from({ length: 10 }, () => users)
      .flat()
      .map(async ({ username, verso }) => {
        const created = await verso.model(CONTACT).create({})
        return username === (created['createdBy'] as { readonly name: string }).name
      })
    return (await Promise.all(records)).filter((isRight) => !isRight).length
  }

  test('two users in one process never mix, however their calls overlap', async () => {
    expect(await countMixedRecords()).toBe(0)
  })

  test('the mutant with one session for the process mixes two users', async () => {
    expect(await countMixedRecords({ fetch: shareSession(fetch) })).toBeGreaterThan(0)
  })

  test('the mutant that lets the service merge results of functions loses a count', async () => {
    const contacts = open('eve', { fetch: mergeAlways(fetch) }).model(CONTACT)
    const { id } = await contacts.create({ phones: 0 })
    let others = 0
    const count = ({ phones }: WireRecord) => ({ phones: (phones as number) + 1 })
    await contacts.update(id, async (record) => {
      if (others++ === 0) await contacts.update(id, count)
      return count(record)
    })
    expect((await contacts.read(id))['phones']).toBe(1)
  })

  test('concurrent first calls share one login, and 8 calls after the end of the session share another', async () => {
    const { count, options } = watchFetch()
    const contacts = open('eve', options).model(CONTACT)
    const callAll = () => Promise.all(Array.from({ length: 8 }, () => contacts.find({ limit: 1 })))
    await callAll()
    expect(count('/callback')).toBe(1)
    await endSessions('eve')
    service.clock.letASecondPass()
    const created = await Promise.all(Array.from({ length: 8 }, () => contacts.create({ notes: 'again' })))
    expect(new Set(created.map(({ id }) => id)).size).toBe(8)
    expect(count('/callback')).toBe(2)
    await callAll()
    expect(count('/callback')).toBe(2)
  })

  test('a wrong password is sent once for each call, and each call gets an error of its own', async () => {
    const { count, options } = watchFetch()
    const contacts = connect(service.url, { username: 'eve', password: 'wrong' }, options).model(CONTACT)
    const errors = await Promise.all(
      [1, 2, 3].map((limit) => rejection(UnauthenticatedError, contacts.find({ limit }))),
    )
    expect(count('/callback')).toBe(1)
    expect(count('/ws/rest/crm.Contact')).toBe(0)
    expect(new Set(errors).size).toBe(3)
  })

  test('a call that is stopped during a shared login does not stop the others', async () => {
    const contacts = open('eve').model(CONTACT)
    const stop = new AbortController()
    const calls = [contacts.find({ limit: 1 }, { signal: stop.signal }), contacts.find({ limit: 1 })]
    stop.abort(new Error('stopped'))
    await expect(calls[0]).rejects.toThrow('stopped')
    expect((await calls[1])?.data).toHaveLength(1)
  })

  test('an account that may no longer log in rejects after one more login', async () => {
    const { count, options } = watchFetch()
    const contacts = open('bob', options).model(CONTACT)
    await contacts.find({ limit: 1 })
    const users = open().model('verso.auth.User')
    const { data } = await users.find({ filter: { username: 'bob' } })
    await users.update(data[0]?.id ?? 0, () => ({ disabled: true }))
    const error = await rejection(UnauthenticatedError, contacts.create({}))
    expect([error.status, count('/callback')]).toEqual([401, 2])
  })

  test('a key that was revoked rejects without a login', async () => {
    const admin = open('eve')
    const { body } = await admin.request('POST', '/ws/me/keys', { body: { data: { name: 'short' } } })
    const [{ id, key }] = (body as { data: [{ id: number; key: string }] }).data
    const { count, options } = watchFetch()
    const byKey = connect(service.url, { key }, options).model(CONTACT)
    await byKey.find({ limit: 1 })
    await admin.request('DELETE', `/ws/me/keys/${id}`)
    await rejection(UnauthenticatedError, byKey.create({}))
    expect(count('/callback')).toBe(0)
  })

  /** Counts how often three calls send credentials that the service rejects. */
  async function countRejectedLogins(connectClient = connect) {
    const { count, options } = watchFetch()
    const verso = connectClient(service.url, { username: 'bob', password: 'wrong' }, options)
    for (let round = 0; round < 3; round++)
      await expect(verso.model(CONTACT).find()).rejects.toMatchObject({ kind: 'unauthenticated' })
    return { verso, logins: () => count('/callback') }
  }

  test('rejected credentials are sent once, until the program logs in again', async () => {
    const { verso, logins } = await countRejectedLogins()
    expect(logins()).toBe(1)
    await rejection(UnauthenticatedError, verso.login())
    expect(logins()).toBe(2)
  })

  test('the mutant that sends rejected credentials with each call is caught', async () => {
    const { logins } = await countRejectedLogins((await importMutantClient(REPEATING_CREDENTIALS)).connect)
    expect(logins()).toBe(3)
  })

  test('an id that is not a whole number, and a malformed range, are refused before anything is sent', async () => {
    const { count, options } = watchFetch()
    const contacts = open(USERNAME, options).model(CONTACT)
    for (const id of ['', '1/../2', '1#', 1.5, -1, null] as unknown as number[]) {
      await rejection(TypeError, contacts.read(id))
      await rejection(TypeError, contacts.remove(id))
      await rejection(
        TypeError,
        contacts.update(id, () => ({})),
      )
    }
    for (const range of [{ first: -5 }, { first: 5, last: 2 }, { first: 0.5 }])
      await rejection(TypeError, contacts.download(1, 'photo', { range }))
    expect(count(`/ws/rest/${CONTACT}`)).toBe(0)
  })

  /** Reads records one by one in an order for which the service can send no cursor. */
  async function readWithoutCursor(connectClient = connect) {
    const contacts = open(USERNAME, {}, connectClient).model(CONTACT)
    for (let index = 0; index < 3; index++) await contacts.create({ notes: `${'é'.repeat(4000)}${index}` })
    const all = contacts.all({ sortBy: ['-notes'], limit: 1 })
    expect((await all.next()).done).toBe(false)
    return all.next()
  }

  test('all() rejects where the service can send no cursor, because pages by offset could skip records', async () => {
    const error = await rejection(RequestError, readWithoutCursor())
    expect(error.message).toMatch(/^The service sent no cursor/)
  })

  test('the mutant that reads on by offset is caught', async () => {
    const next = await readWithoutCursor((await importMutantClient(READING_BY_OFFSET)).connect)
    expect(next.done).toBe(false)
  })

  test('a URL of another protocol, such as one without http://, is refused at once', () => {
    for (const url of ['localhost:8080', 'ftp://localhost', 'file:///etc/passwd'])
      expect(() => connect(url)).toThrow(/^The URL of a service begins with http:\/\/ or https:\/\/, not /)
    expect(() => connect('records.example.org')).toThrow(TypeError)
    expect(() => connect('http://ada:secret@localhost')).toThrow(
      /^Pass the user name and the password as cred/,
    )
  })

  test('a path and a header that fetch would misread are refused before anything is sent', async () => {
    const { count, options } = watchFetch()
    const verso = connect(service.url, { key: 'a key\nof two lines' }, options)
    await expect(verso.request('GET', '.example.org/ws/me')).rejects.toThrow(
      new TypeError('A path begins with "/"'),
    )
    const error = await rejection(TypeError, verso.model(CONTACT).find())
    expect(error.message).toMatch(/^The value of the header \S+ has characters that HTTP does not allow$/)
    expect(count('')).toBe(0)
  })

  test('an error has the stack of the call: its first line outside of the client is the line of the caller', async () => {
    const contacts = open().model(CONTACT)
    await contacts.find({ limit: 0 })
    const failures = [
      () => contacts.read(9_999_999),
      () => contacts.update(9_999_999, () => ({})),
      () => connect(service.url, { username: 'eve', password: 'wrong' }).model(CONTACT).find(),
      () => contacts.follow({ since: 9_999_999 })[Symbol.asyncIterator]().next(),
      () => contacts.changes({ wait: 30, since: 0 }, { timeout: 0 }),
    ]
    const [, line = ''] = /sessions\.test\.ts:(\d+)/.exec(new Error().stack ?? '') ?? []
    for (const [index, fail] of failures.entries()) {
      const { name, message, stack = '' } = await rejection(RequestError, fail())
      expect(stack.startsWith(`${name}: ${message}\n`)).toBe(true)
      const frame = stack.split('\n').find((each) => /^\s+at /.test(each) && !each.includes('/src/client/'))
      expect(frame).toContain(`sessions.test.ts:${Number(line) - failures.length - 1 + index}`)
    }
  })

  test('with --compat axelor, errors about records reject although their status is 200', async () => {
    const lenient = await startService(engine, { http: { compat: 'axelor' } })
    try {
      const contacts = connect(lenient.url, { username: USERNAME, password: PASSWORD }).model(CONTACT)
      const { id } = await contacts.create({ notes: 'one' })
      await contacts.update(id, { version: 0, notes: 'two' })
      const conflict = await rejection(ConflictError, contacts.update(id, { version: 0, notes: 'three' }))
      expect(conflict).toMatchObject({ kind: 'conflict', status: 200, current: 1 })
      await rejection(NotFoundError, contacts.read(9_999_999))
      const limited = connect(lenient.url, { username: USERNAME, password: PASSWORD }).model('test.Limited')
      const invalid = await rejection(InvalidError, limited.create({ code: 'x' }))
      expect(Object.keys(invalid.fields)).toEqual(['code'])
      const saved = await contacts.update(id, ({ notes }) => ({ notes: `${String(notes)}!` }))
      expect(saved['notes']).toBe('two!')
    } finally {
      await lenient.close()
    }
  })
})
