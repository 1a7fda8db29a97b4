import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { USER_SYSTEM_MODEL } from '../../src/model/catalog/system-models.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { addUser, changePassword, setUserDisabled } from '../../src/service/auth/accounts.js'
import { removeRecord } from '../../src/service/records/remove.js'
import type { Queryable } from '../../src/store/engine/database.js'
import { onEngineOfTier, startService, type Service } from '../targets.js'
import { asUser, credentials, expectError, login, openSession, sessionIdOf } from './exchange.js'
import { createContext } from '../../src/service/context/context.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const SECRET = 'a password for bob'

onEngineOfTier((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  const statusOf = async (cookie: string, url = service.url) =>
    (await asUser(url, cookie).get('/ws/rest/crm.Contact')).status

  describe('session ids', () => {
    test('each login creates a new session id', async () => {
      const ids = new Set<string>()
      for (let count = 0; count < 5; count++) ids.add(sessionIdOf(await login(service.url)))
      expect(ids.size).toBe(5)
    })

    test('a login ends the session in its cookie, and no other', async () => {
      const [old, other] = [await openSession(service.url), await openSession(service.url)]
      const fresh = await openSession(service.url, { cookie: old })
      expect([await statusOf(old), await statusOf(other), await statusOf(fresh)]).toEqual([401, 200, 200])
    })

    test('a failed login ends no session', async () => {
      const cookie = await openSession(service.url)
      expect((await login(service.url, { cookie }, credentials('ada', 'wrong'))).status).toBe(401)
      expect(await statusOf(cookie)).toBe(200)
    })

    test('an unknown session id is never adopted by a login', async () => {
      const invented = `JSESSIONID=${'A'.repeat(43)}`
      const fresh = await openSession(service.url, { cookie: invented })
      expect(fresh).not.toBe(invented)
      expect([await statusOf(invented), await statusOf(fresh)]).toEqual([401, 200])
    })

    test('only the complete session id is accepted', async () => {
      const cookie = await openSession(service.url)
      const id = cookie.slice('JSESSIONID='.length)
      const spellings = [
        id.slice(1),
        `${id}A`,
        `"${id}"`,
        id.toUpperCase(),
        ` ${id}=`,
        encodeURIComponent(`${id} `),
        '',
      ]
      for (const spelling of spellings) expect(await statusOf(`JSESSIONID=${spelling}`), spelling).toBe(401)
      for (const name of ['jsessionid', 'JSESSIONID2', 'CSRF-TOKEN', '__Host-JSESSIONID']) {
        expect(await statusOf(`${name}=${id}`), name).toBe(401)
      }
      for (const among of [`a=b; ${cookie}; c=d`, `${cookie};x`, `;;${cookie}`])
        expect(await statusOf(among), among).toBe(200)
    })

    test('only a hash of the session id is stored, in any table or file', async () => {
      const cookie = await openSession(service.url)
      await asUser(service.url, cookie).create(
        'crm.Contact',
        { firstName: 'Marker' },
        { 'idempotency-key': 'sessions-1' },
      )
      const id = cookie.slice('JSESSIONID='.length)
      const stored = await everythingStored(service)
      expect(stored).toContain('Marker')
      expect(stored).toContain('sessions-1')
      expect(stored).not.toContain(id)
      expect(stored).not.toContain(Buffer.from(id, 'base64url').toString('hex'))
    })
  })

  describe('expiry of sessions', () => {
    let timed: Service
    beforeAll(async () => {
      timed = await startService(engine)
    })
    afterAll(() => timed.close())

    const lastSeenMs = async () => {
      const [row] = await timed.app.db.reader.all('select max(seen_ms) as "seen" from verso_session')
      return Number(row?.['seen'])
    }
    /** Uses the session, and waits until its last use is stored, which happens in the background. */
    const use = async (cookie: string) => {
      const now = timed.clock.now()
      expect(await statusOf(cookie, timed.url)).toBe(200)
      await expect.poll(lastSeenMs).toBeGreaterThanOrEqual(now)
    }

    test('a session expires after an hour without use', async () => {
      const cookie = await openSession(timed.url)
      timed.clock.advance(59 * MINUTE_MS)
      await use(cookie)
      timed.clock.advance(59 * MINUTE_MS)
      await use(cookie)
      timed.clock.advance(60 * MINUTE_MS + 1)
      expectError(await asUser(timed.url, cookie).get('/ws/rest/crm.Contact'), 401, 'unauthenticated')
    })

    test('a session expires after twelve hours of use', async () => {
      const cookie = await openSession(timed.url)
      for (let count = 0; count < 13; count++) {
        timed.clock.advance(55 * MINUTE_MS)
        await use(cookie)
      }
      timed.clock.advance(5 * MINUTE_MS + 1)
      expect(await statusOf(cookie, timed.url)).toBe(401)
    })

    test('the idle time and the lifetime of a session are settings', async () => {
      const short = await startService(engine, {
        settings: { sessionIdleTimeoutMs: HOUR_MS / 2, sessionMaxAgeMs: HOUR_MS },
      })
      try {
        const idle = await openSession(short.url)
        short.clock.advance(HOUR_MS / 2 + 1)
        expect(await statusOf(idle, short.url)).toBe(401)
      } finally {
        await short.close()
      }
    })
  })

  describe('accounts', () => {
    const newUser = async (username: string) => {
      const id = await addUser(service.app, { username, password: SECRET, roles: ['editor'] })
      return { id, cookie: await openSession(service.url, {}, credentials(username, SECRET)) }
    }

    test('a changed password ends every session of its user, and no others', async () => {
      const mine = await openSession(service.url)
      const { cookie } = await newUser('carol')
      const second = await openSession(service.url, {}, credentials('carol', SECRET))
      await changePassword(service.app, 'carol', 'another password for her')
      expect([await statusOf(cookie), await statusOf(second), await statusOf(mine)]).toEqual([401, 401, 200])
      expect((await login(service.url, {}, credentials('carol', SECRET))).status).toBe(401)
      expect((await login(service.url, {}, credentials('carol', 'another password for her'))).status).toBe(
        200,
      )
    })

    test('a disabled user is logged out and cannot log in; enabling restores no session', async () => {
      const { cookie } = await newUser('dave')
      await setUserDisabled(service.app, 'dave', true)
      expect(await statusOf(cookie)).toBe(401)
      const disabled = await login(service.url, {}, credentials('dave', SECRET))
      const wrong = await login(service.url, {}, credentials('dave', 'wrong'))
      const textOf = (answer: typeof wrong) =>
        answer.text.replace(String(answer.headers['x-request-id']), 'ID')
      expect([disabled.status, textOf(disabled)]).toEqual([401, textOf(wrong)])
      await setUserDisabled(service.app, 'dave', false)
      expect(await statusOf(cookie)).toBe(401)
      expect((await login(service.url, {}, credentials('dave', SECRET))).status).toBe(200)
    })

    test('a deleted user is logged out and cannot log in', async () => {
      const { id, cookie } = await newUser('erin')
      await removeRecord(createContext(service.app, SERVICE_PRINCIPAL), USER_SYSTEM_MODEL, id)
      expect(await statusOf(cookie)).toBe(401)
      expect((await login(service.url, {}, credentials('erin', SECRET))).status).toBe(401)
    })

    test('the end of a session takes effect on the other node immediately', async () => {
      const other = await startService(engine, { location: service.location })
      try {
        const { id, cookie } = await newUser('frank')
        expect(await statusOf(cookie, other.url)).toBe(200)
        await asUser(other.url, cookie).get('/logout')
        expect([await statusOf(cookie), await statusOf(cookie, other.url)]).toEqual([401, 401])
        for (const end of [
          () => changePassword(service.app, 'frank', SECRET),
          () =>
            setUserDisabled(service.app, 'frank', true).then(() =>
              setUserDisabled(service.app, 'frank', false),
            ),
          () => removeRecord(createContext(service.app, SERVICE_PRINCIPAL), USER_SYSTEM_MODEL, id),
        ]) {
          const here = await openSession(service.url, {}, credentials('frank', SECRET))
          await end()
          expect(await statusOf(here, other.url)).toBe(401)
        }
      } finally {
        await other.close()
      }
    })
  })

  test('internal tables cannot be accessed as models', async () => {
    const user = asUser(service.url, await openSession(service.url))
    for (const model of ['verso_session', 'verso_log', 'verso_epoch', 'VERSO.auth.User']) {
      expectError(await user.get(`/ws/rest/${model}`), 404, 'unknown-model')
      expectError(await user.get(`/ws/rest/${model}/1`), 404, 'unknown-model')
      expectError(await user.create(model, { username: 'eve' }), 404, 'unknown-model')
    }
  })
})

/** Every row of every table as text, on SQLite also every byte of every file. */
async function everythingStored({ app, location }: Service): Promise<string> {
  const rows = JSON.stringify(await everyRow(app.db.reader, location.url.startsWith('sqlite:')))
  if (!location.url.startsWith('sqlite:')) return rows
  const folder = path.dirname(location.url.slice('sqlite:'.length))
  return [rows, ...readdirSync(folder).map((file) => readFileSync(path.join(folder, file), 'latin1'))].join(
    '\n',
  )
}

async function everyRow(db: Queryable, isSqlite: boolean): Promise<unknown[]> {
  const tables = await db.all(
    isSqlite
      ? `select name from sqlite_master where type = 'table'`
      : `select tablename as name from pg_tables where schemaname = current_schema()`,
  )
  expect(tables.map((table) => table['name'])).toContain('verso_session')
  return Promise.all(tables.map((table) => db.all(`select * from "${String(table['name'])}"`)))
}
