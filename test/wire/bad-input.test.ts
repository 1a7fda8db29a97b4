// Invalid requests of every kind: the right error on both engines, no leak, no change, and the service keeps running.
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EVENT_MODEL } from '../../src/model/catalog/auth-models.js'
import type { App } from '../../src/service/context/app.js'
import { onEveryEngine, PASSWORD, startService, type Engine, type Service } from '../targets.js'
import { batches } from './bad-input/batches.js'
import { bodies } from './bad-input/bodies.js'
import type { Case } from './bad-input/case.js'
import { manyRecords } from './bad-input/many.js'
import { paths } from './bad-input/paths.js'
import { protocol } from './bad-input/protocol.js'
import { relations } from './bad-input/relations.js'
import { searches } from './bad-input/searches.js'
import { fieldValues } from './bad-input/values.js'
import { asUser, envelope, openSession, send, sendRaw, type Answer } from './exchange.js'

const cases: readonly Case[] = [
  ...[...paths, ...bodies, ...fieldValues, ...protocol],
  ...[...relations, ...searches, ...manyRecords, ...batches],
]

const LEAK =
  /node_modules|\bat \S+:\d+|\.[jt]s:\d+|\n\s+at |SQLITE_|select |insert into|update "|constraint|\/(?:work|tmp|home|usr)\/|stack|argon2/
const TABLES = [
  ...['crm.Contact', 'test.Everything', 'test.Limited', 'test.Note', 'verso.auth.User'],
  ...['rel.Company', 'rel.Address', 'rel.Door', 'rel.Person', 'rel.Circle', 'rel.Person:circles'],
  ...['verso_sequence', 'verso_log', 'verso_schema', 'verso_idempotency'],
]

/** PostgreSQL prints all tables in one statement, which takes much less time than a statement for each. */
const AS_ONE_ROW = `select ${TABLES.map(
  (table, index) =>
    `(select string_agg(t::text, chr(10) order by t::text) from ${rowsOf(table)}) as "table${index}"`,
).join()}`

test('there are at least 800 cases of bad input, each with its own name', () => {
  expect(cases.length).toBeGreaterThanOrEqual(800)
  expect(new Set(cases.map((one) => one.name)).size).toBe(cases.length)
})

onEveryEngine((engine) => {
  let service: Service
  let cookie: string
  let stored: string
  let addresses = 0

  beforeAll(async () => {
    service = await startService(engine, { http: { trustProxy: ['127.0.0.1'] } })
    cookie = await openSession(service.url)
    const user = asUser(service.url, cookie)
    await user.create('crm.Contact', { firstName: 'Target' })
    await user.ask('POST', '/ws/rest/crm.Contact/1', { version: 0, lastName: 'Record' })
    await user.create('test.Limited', { code: 'AA', number: 1 })
    await user.create('rel.Company', { name: 'One', addresses: [{ city: 'A', doors: [{ code: 'd' }] }] })
    await user.create('rel.Company', { name: 'Two', addresses: [{ city: 'B' }] })
    await user.create('rel.Person', { name: 'P', company: { id: 1 } })
    stored = await digestOf(service.app, engine)
  })
  afterAll(() => service.close())

  const ask = ({ sent }: Case): Promise<Answer> => {
    if ('raw' in sent) {
      const bytes = typeof sent.raw === 'string' ? sent.raw.replace('{cookie}', cookie) : sent.raw
      return sendRaw(service.url, bytes, sent.isCut)
    }
    // The service counts failed logins by address, so each case has its own.
    const address = `10.0.${Math.floor(++addresses / 250)}.${addresses % 250}`
    return send(service.url, { ...sent, headers: { cookie, 'x-forwarded-for': address, ...sent.headers } })
  }

  test.for(cases)('$name is answered with $status $kind', async (one) => {
    const answer = await ask(one)
    if (one.kind === 'done' || one.kind === 'bare')
      expect(answer.status, answer.text.slice(0, 300)).toBe(one.status)
    else expectRejected(answer, one)
    if (one.says !== undefined) expect(answer.text).toContain(one.says)
    expect(answer.text).not.toMatch(LEAK)
    expect(answer.text).not.toContain(PASSWORD)
    const [before, after] = [stored, await digestOf(service.app, engine)]
    stored = after
    if (one.kind !== 'done') expect(after, 'the stored records').toBe(before)
    expect((await send(service.url, { path: '/healthz' })).status).toBe(200)
    expect('polluted' in {}).toBe(false)
  })

  test('the target record is unchanged after all bad input', async () => {
    const answer = await asUser(service.url, cookie).get('/ws/rest/crm.Contact/1')
    expect(JSON.parse(answer.text)).toMatchObject({ data: [{ version: 1, fullName: 'Target Record' }] })
  })
})

function expectRejected(answer: Answer, { status, kind, faults }: Case): void {
  expect(answer.headers['content-type'], answer.text.slice(0, 300)).toBe('application/json; charset=utf-8')
  const body = envelope(answer)
  expect([answer.status, body.data.kind], answer.text.slice(0, 300)).toEqual([status, kind])
  expect(body.status).toBe(kind === 'invalid' ? -4 : -1)
  expect(Object.keys(body.data).slice(0, 3)).toEqual(['kind', 'title', 'message'])
  expect(answer.text.length).toBeLessThan(50_000)
  if (faults) expect(Object.keys(body.errors ?? {}).sort()).toEqual(faults)
}

/** Everything stored, except for data that any request may change: sessions and failed logins. */
async function digestOf({ db }: App, engine: Engine): Promise<string> {
  const tables =
    engine === 'postgres'
      ? await db.reader.all(AS_ONE_ROW)
      : await Promise.all(
          TABLES.map((table) => db.reader.all(`select * from ${rowsOf(table)} order by 1, 2`)),
        )
  return createHash('sha256').update(JSON.stringify(tables)).digest('hex')
}

/** Every failed login adds an event. */
function rowsOf(table: string): string {
  return `"${table}" as t${table === 'verso_log' ? ` where t.model <> '${EVENT_MODEL}'` : ''}`
}
