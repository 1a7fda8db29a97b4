// Every kind of error, provoked over HTTP, with its status and its envelope.
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildPairKey } from '../../src/service/auth/throttle.js'
import { recordsFor } from '../../src/service/records/records.js'
import { raiseRetentionFloor } from '../../src/store/log/feed.js'
import { VersoError, ERROR_KINDS, type ErrorKind } from '../../src/errors.js'
import {
  identityIn,
  preparedLocation,
  onEveryEngine,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { FailingDatabase } from './failing-database.js'
import {
  asUser,
  credentials,
  envelope,
  login,
  only,
  openSession,
  send,
  type Answer,
  type User,
} from './exchange.js'

const CONTACTS = '/ws/rest/crm.Contact'

interface Context {
  readonly service: Service
  readonly database: FailingDatabase
  readonly user: User
  /** The id of a record at version 1. */
  readonly id: number
}
type Provoke = (context: Context) => Promise<Answer>

/** Only the write fails, as on a full disk; reads succeed. */
const failingWith =
  (failure: Error): Provoke =>
  async ({ database, user }) => {
    const { transaction } = database
    database.transaction = () => Promise.reject(failure)
    try {
      return await user.create('crm.Contact', {})
    } finally {
      database.transaction = transaction
    }
  }

const provocations: Readonly<Record<ErrorKind, readonly [status: number, provoke: Provoke]>> = {
  'bad-request': [400, ({ user }) => user.get(`${CONTACTS}?limit=-1`)],
  unauthenticated: [401, ({ service }) => send(service.url, { path: CONTACTS })],
  forbidden: [403, ({ user }) => user.create('crm.Contact', {}, { 'sec-fetch-site': 'cross-site' })],
  'unknown-model': [404, ({ user }) => user.get('/ws/rest/crm.Nothing')],
  'not-found': [404, ({ user }) => user.get(`${CONTACTS}/999999999`)],
  method: [405, ({ user }) => user.ask('PATCH', CONTACTS, {})],
  conflict: [409, ({ user, id }) => user.ask('POST', `${CONTACTS}/${id}`, { version: 0 })],
  'not-unique': [409, ({ user }) => user.create('test.Limited', { code: 'TAKE' })],
  'still-referenced': [
    409,
    async ({ user }) => {
      const { id } = only(await user.create('rel.Company', { name: 'C' }))
      await user.create('rel.Person', { company: { id } })
      return user.ask('DELETE', `/ws/rest/rel.Company/${id}`)
    },
  ],
  range: [
    416,
    async ({ service, user }) => {
      const identity = await identityIn(service)
      const { data } = await recordsFor(service.app, identity).upload('doc.Folder', {
        content: Readable.from([Buffer.from('text')]),
      })
      return user.get(`/ws/rest/doc.Folder/${data.id}/cover/download`, { range: 'bytes=4-' })
    },
  ],
  gone: [
    410,
    async ({ service, user }) => {
      await service.app.db.transaction((tx) => raiseRetentionFloor(tx, 1))
      return user.get('/ws/changes')
    },
  ],
  'stale-match': [412, ({ user, id }) => user.ask('POST', `${CONTACTS}/${id}`, {}, { 'if-match': '"0"' })],
  'too-large': [413, ({ user }) => user.create('crm.Contact', { notes: 'x'.repeat(2 * 1024 * 1024) })],
  'media-type': [415, ({ user }) => user.create('crm.Contact', {}, { 'content-type': 'text/plain' })],
  misdirected: [421, ({ user }) => user.get(CONTACTS, { host: 'evil.example' })],
  invalid: [422, ({ user }) => user.create('crm.Contact', { firstName: 1 })],
  'key-reused': [
    422,
    ({ user }) => user.create('crm.Contact', { firstName: 'B' }, { 'idempotency-key': 'used' }),
  ],
  'too-many': [429, ({ service }) => login(service.url, {}, credentials('throttled', 'wrong'))],
  'hook-failed': [500, failingWith(new VersoError('hook-failed', 'crm.Contact.beforeSave did not finish'))],
  busy: [503, failingWith(new VersoError('busy', 'Too many writes are waiting', { retryAfterS: 1 }))],
  'storage-full': [507, failingWith(new VersoError('storage-full', 'The disk is full', { retryAfterS: 10 }))],
}
const kinds = Object.keys(provocations) as ErrorKind[]

onEveryEngine((engine) => {
  let location: DatabaseLocation
  let context: Context

  beforeAll(async () => {
    location = await preparedLocation(engine)
    const database = await FailingDatabase.open(location.url)
    const service = await startService(engine, {
      ...{ location, database },
      expects: ['internal', 'busy', 'storage-full'],
    })
    const user = asUser(service.url, await openSession(service.url))
    const { id } = only(await user.create('crm.Contact', {}))
    await user.ask('POST', `${CONTACTS}/${id}`, { version: 0 })
    await user.create('test.Limited', { code: 'TAKE' })
    await user.create('crm.Contact', { firstName: 'A' }, { 'idempotency-key': 'used' })
    const failures = [buildPairKey('throttled', '127.0.0.1'), service.clock.now(), 30]
    await database.transaction((tx) =>
      tx.run('insert into verso_login_failure (key, since_ms, failures) values (?, ?, ?)', failures),
    )
    context = { service, database, user, id }
  })
  afterAll(async () => {
    await context.service.close()
    location.remove()
  })

  const seen = new Set<string>()

  test.for(kinds)('the error kind %s has its status, envelope and headers', async (kind) => {
    const [status, provoke] = provocations[kind]
    const answer = await provoke(context)
    const body = envelope(answer)
    expect([answer.status, body.data.kind], answer.text.slice(0, 300)).toEqual([status, kind])
    expect(body.status).toBe(kind === 'invalid' ? -4 : -1)
    expect(Object.keys(body.data).slice(0, 4)).toEqual(['kind', 'title', 'message', 'requestId'])
    expect(body.data['requestId']).toBe(answer.headers['x-request-id'])
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
    expect('allow' in answer.headers).toBe(kind === 'method')
    expect('retry-after' in answer.headers).toBe(['too-many', 'busy', 'storage-full'].includes(kind))
    expect('errors' in body).toBe(kind === 'invalid' || kind === 'not-unique')
    seen.add(body.data.kind)
  })

  test('the tests provoke every error kind', () => {
    expect([...seen].sort()).toEqual([...ERROR_KINDS].sort())
  })

  test('a service without its database is alive but not ready', async () => {
    const { database, service } = context
    database.failure = new VersoError('busy', 'gone')
    const [alive, ready] = [
      await send(service.url, { path: '/healthz' }),
      await send(service.url, { path: '/readyz' }),
    ]
    database.failure = undefined
    expect(alive.status).toBe(200)
    expect([ready.status, ready.headers['retry-after']]).toEqual([503, '1'])
    expect(envelope(ready).data).toMatchObject({ kind: 'busy', message: 'The database cannot be reached' })
  })

  test('a defect is 500 without details, on every route', async () => {
    const defect = new Error(
      'SQLITE_CORRUPT: select * from "verso.auth.User" at /srv/app/src/store/sqlite.ts:1:2',
    )
    const { database, service, user } = context
    database.failure = defect
    try {
      for (const answer of [
        await user.get(CONTACTS),
        await user.create('crm.Contact', {}),
        await login(service.url),
        await send(service.url, { path: '/logout', headers: { cookie: `JSESSIONID=${'A'.repeat(43)}` } }),
      ]) {
        expect(answer.status).toBe(500)
        expect(answer.text.replace(String(answer.headers['x-request-id']), 'ID')).toBe(
          '{"status":-1,"data":{"kind":"internal","title":"Internal error","message":' +
            '"Internal error; see the server log for this requestId","requestId":"ID"}}',
        )
      }
    } finally {
      database.failure = undefined
    }
    expect((await user.get(CONTACTS)).status).toBe(200)
  })
})
