// PostgreSQL goes away, comes back, or blocks: the process survives, clients get 503, and no acknowledged write is lost.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { createDatabase, startPostgres, type Postgres } from '../postgres.js'
import { PASSWORD, catchError, startService, USERNAME, type Service } from '../targets.js'
import { exchange, type Session } from './load-client.js'
import { Journal } from './journal.js'
import { startProxy } from './proxy.js'
import { startServerProcess, type ServerProcess } from './server-process.js'

const WORKERS = 8
const CONTACTS = '/ws/rest/crm.Contact'

let postgres: Postgres

beforeAll(async () => {
  postgres = await startPostgres({ durable: true })
})
afterAll(() => postgres.stop())

describe('a server process under load', () => {
  let url: string
  let node: ServerProcess | undefined

  beforeEach(async () => {
    url = await createDatabase(postgres.url)
  })
  afterEach(() => node?.kill())

  async function start(db: string): Promise<Session> {
    node = await startServerProcess(db, undefined, undefined, { expects: ['busy'] })
    return HttpClient.login(node.url, USERNAME, PASSWORD)
  }

  /** The process runs, every request was answered, and every acknowledged write is stored. */
  async function expectSound(journal: Journal): Promise<void> {
    expect(node?.isRunning(), node?.complaints()).toBe(true)
    expect(Object.keys(journal.answers).filter((answer) => !['200', '503'].includes(answer))).toEqual([])
    const observer = await openDatabase(url, { poolSize: 1, statementTimeoutMs: 10_000 })
    expect(await journal.check(observer.reader)).toEqual([])
    await observer.close()
  }

  test('a node survives ten terminations of all its database connections without a lost write', async () => {
    const session = await start(url)
    const journal = await underLoad(session, async () => {
      for (let i = 0; i < 10; i++) {
        await onServer(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'verso'`,
        )
        await sleep(80)
      }
    })
    await expectSound(journal)
    expect(journal.acknowledged).toBeGreaterThan(WORKERS)
  })

  test('a node survives twenty resets of all its database connections without a lost write', async () => {
    const proxy = await startProxy(url)
    const session = await start(proxy.url)
    const journal = await underLoad(session, async () => {
      for (let i = 0; i < 20; i++) {
        proxy.cut()
        await sleep(50)
      }
    })
    await expectSound(journal)
    expect(journal.acknowledged).toBeGreaterThan(WORKERS)
    await node?.kill()
    await proxy.close()
  })

  test('a node answers 503 during a crash of PostgreSQL, and writes again within 2 seconds after it', async () => {
    const session = await start(url)
    let recoveredMs = 0
    const journal = await underLoad(session, async () => {
      await postgres.crash()
      const read = await exchange(session, 'GET', `${CONTACTS}?limit=1`)
      expect([read.status, read.headers['retry-after']]).toEqual([503, '1'])
      expect((await fetch(`${session.url}/healthz`)).status).toBe(200)
      expect((await fetch(`${session.url}/readyz`)).status).toBe(503)
      await postgres.restart()
      recoveredMs = await untilWritten(session)
    })
    await expectSound(journal)
    expect(recoveredMs).toBeLessThan(2_000)
    expect(journal.answers['503']).toBeGreaterThan(0)
  })
})

describe('a service that waits for the database', () => {
  let service: Service
  let client: HttpClient
  let foreign: pg.Client

  async function start(statementTimeoutMs: number): Promise<void> {
    const url = await createDatabase(postgres.url)
    service = await startService('postgres', {
      location: { url, remove: () => undefined },
      settings: { statementTimeoutMs },
      expects: ['busy'],
    })
    client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    foreign = new pg.Client(url)
    await foreign.connect()
  }
  afterEach(async () => {
    await foreign.end()
    await service.close()
  })

  /** Updates a record that another transaction locks; returns the duration, too. */
  async function updateHeld(): Promise<{
    status: number
    retryAfter: string | undefined
    kind: string
    ms: number
  }> {
    const { data } = await client.create('crm.Contact', { lastName: 'held' })
    await foreign.query('begin')
    await foreign.query('select * from "crm.Contact" where id = $1 for update', [data.id])
    const since = performance.now()
    const answer = await exchange(client, 'POST', `${CONTACTS}/${data.id}`, {
      data: { version: 0, lastName: 'late' },
    })
    const ms = performance.now() - since
    await foreign.query('rollback')
    const { kind } = answer.body.data as { kind: string }
    const after = await client.update('crm.Contact', data.id, { version: 0, lastName: 'free' })
    expect(after.data.version).toBe(1)
    return { status: answer.status, retryAfter: answer.headers['retry-after'], kind, ms }
  }

  test('an update that waits for a foreign lock is 503 after 3 seconds, and other writes succeed', async () => {
    await start(10_000)
    const journal = new Journal()
    let isOver = false
    const others = [1, 2, 3, 4].map(() => journal.keepWriting(client, () => isOver))
    const { ms, ...answer } = await updateHeld()
    isOver = true
    await Promise.all(others)
    expect(answer).toEqual({ status: 503, retryAfter: '1', kind: 'busy' })
    expect(ms).toBeGreaterThan(2_500)
    expect(Object.keys(journal.answers)).toEqual(['200'])
    expect(journal.faults).toEqual([])
  })

  test('an update that waits longer than the statement timeout is 503', async () => {
    await start(500)
    const { ms, ...answer } = await updateHeld()
    expect(answer).toEqual({ status: 503, retryAfter: '1', kind: 'busy' })
    expect(ms).toBeLessThan(2_500)
    expect(await catchError(service.app.db.reader.all('select pg_sleep(20)'))).toMatchObject({ kind: 'busy' })
  })
})

test('a statement interrupted while it is sent is retried', async () => {
  const proxy = await startProxy(await createDatabase(postgres.url))
  const db = await openDatabase(proxy.url, { poolSize: 1, statementTimeoutMs: 10_000 })
  // More than the system buffers, so that a part is still unsent when the connection breaks.
  const big = 'x'.repeat(40_000_000)
  await db.reader.all('select 1 as one')
  const [rows] = await Promise.all([db.reader.all('select length(?) as length', [big]), proxy.choke()])
  expect(rows).toEqual([{ length: big.length }])
  await db.close()
  await proxy.close()
})

async function onServer(sql: string): Promise<void> {
  const client = new pg.Client(postgres.url)
  await client.connect()
  await client.query(sql)
  await client.end()
}

/** Runs writers before, during and after the fault. */
async function underLoad(session: Session, fault: () => Promise<void>): Promise<Journal> {
  const journal = new Journal()
  let isOver = false
  const workers = Array.from({ length: WORKERS }, () => journal.keepWriting(session, () => isOver))
  await sleep(300)
  try {
    await fault()
    await sleep(300)
  } finally {
    isOver = true
    await Promise.all(workers)
  }
  return journal
}

/** The time until a write succeeds. */
async function untilWritten(session: Session): Promise<number> {
  const since = performance.now()
  while ((await exchange(session, 'PUT', '/ws/rest/test.Note', { data: { title: 'back' } })).status !== 200) {
    await sleep(20)
  }
  return performance.now() - since
}
