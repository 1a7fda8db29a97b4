// PostgreSQL stops responding without closing a connection: every request is answered in time, and nothing acknowledged is lost.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { ANY_FAILURE } from '../server-failures.js'
import { importMutantStore } from '../mutants/watchdog.js'
import { createDatabase, startPostgres, type Postgres } from '../postgres.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { Journal } from './journal.js'
import { exchange, type Session } from './load-client.js'
import { startProxy } from './proxy.js'
import { canDropPackets, SILENCES, type SilentServer } from './silence.js'

const NODES = 3
const WRITERS_EACH = 4
const SILENCE_MS = 10_000
/** The bars: how long a request may take, and how long after the silence the nodes may need. */
const LIMIT_MS = 6_000
const HEALED_MS = 1_000
const CONTACTS = '/ws/rest/crm.Contact'
/** Logs in again and again. */
const VISITOR = { username: 'bob', password: PASSWORD }
const SILENT = 'The database does not respond; nothing was changed'
const OPTIONS = { poolSize: 6, statementTimeoutMs: 10_000 }

let postgres: Postgres
let silent: SilentServer | undefined

beforeAll(async () => {
  postgres = await startPostgres({ durable: true })
})
afterEach(async () => {
  await silent?.close()
})
afterAll(() => postgres.stop())

/** Measures every request to the servers of this process. */
class Durations {
  readonly all: { readonly request: string; readonly status: number; readonly ms: number }[] = []
  readonly #started = new WeakMap<IncomingMessage, number>()

  readonly onStart = (message: unknown) => {
    const { request } = message as { request: IncomingMessage }
    this.#started.set(request, performance.now())
  }

  readonly onFinish = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: { statusCode: number } }
    const ms = performance.now() - (this.#started.get(request) ?? 0)
    this.all.push({
      request: `${request.method ?? ''} ${request.url ?? ''}`,
      status: response.statusCode,
      ms,
    })
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    subscribe('http.server.request.start', this.onStart)
    subscribe('http.server.response.finish', this.onFinish)
    try {
      return await work()
    } finally {
      unsubscribe('http.server.request.start', this.onStart)
      unsubscribe('http.server.response.finish', this.onFinish)
    }
  }
}

/** Reads, searches, logins and long polls, until it is told to stop. Returns answers that no client should get. */
async function keepReading(session: Session, isOver: () => boolean): Promise<string[]> {
  const unexpected: string[] = []
  const visitor = { ...session, cookie: '' }
  const repeat = async (method: string, path: string, body?: object, pauseMs = 20) => {
    while (!isOver()) {
      const { status, headers, body: answer } = await exchange(body ? visitor : session, method, path, body)
      if (status === 503 && headers['retry-after'] === undefined)
        unexpected.push(`${path} without Retry-After`)
      if (status !== 200 && status !== 503) unexpected.push(`${path}: ${status} ${JSON.stringify(answer)}`)
      await sleep(pauseMs)
    }
  }
  await Promise.all([
    repeat('GET', `${CONTACTS}?limit=5`),
    repeat('GET', `${CONTACTS}?q=write&sortBy=-lastName&limit=5`),
    repeat('GET', '/ws/changes?since=1&model=test.Limited&wait=1'),
    repeat('POST', '/callback', VISITOR, 300),
  ])
  return unexpected
}

interface Outcome {
  readonly violations: readonly string[]
  readonly unexpected: readonly string[]
  readonly slow: readonly unknown[]
  readonly answers: Readonly<Record<string, number>>
  readonly healedMs: number
  readonly errors: readonly string[]
}

/** Runs nodes under load through a silence. */
async function endure(how: string, open?: (url: string) => Promise<Database>): Promise<Outcome> {
  const url = await createDatabase(postgres.url)
  silent = await (SILENCES[how] ?? startNothing)(postgres, url)
  const errors: string[] = []
  const log = pino({ level: 'error' }, { write: (line) => void errors.push(line) })
  const services: Service[] = []
  for (let i = 0; i < NODES; i++) {
    const location = { url: silent.url, remove: () => undefined }
    const database = await open?.(silent.url)
    services.push(
      await startService('postgres', {
        location,
        log,
        expects: database ? ANY_FAILURE : ['busy'],
        ...(database ? { database } : {}),
      }),
    )
  }
  const [first] = services
  if (first) await addUser(first.app, { ...VISITOR, name: 'Bob', roles: [] })
  const sessions = await Promise.all(services.map((each) => HttpClient.login(each.url, USERNAME, PASSWORD)))
  const journal = new Journal()
  const durations = new Durations()
  let isOver = false
  const { unexpected, healedMs } = await durations.during(async () => {
    const reading = sessions.map((session) => keepReading(session, () => isOver))
    const writing = sessions.flatMap((session) =>
      Array.from({ length: WRITERS_EACH }, () => journal.keepWriting(session, () => isOver)),
    )
    await sleep(1_000)
    silent?.begin()
    await sleep(SILENCE_MS)
    silent?.end()
    const endedMs = performance.now()
    await Promise.all(sessions.map(untilWritten))
    const healed = performance.now() - endedMs
    await sleep(1_000)
    isOver = true
    await Promise.all(writing)
    return { unexpected: (await Promise.all(reading)).flat(), healedMs: healed }
  })
  const observer = await openDatabase(url, { ...OPTIONS, poolSize: 1 })
  const violations = await journal.check(observer.reader)
  await observer.close()
  await vi.waitFor(() => {
    for (const { server } of services)
      expect(Object.values(server.gauges()).filter((value) => value !== 0)).toEqual([])
  }, 5_000)
  for (const service of services) await service.close()
  return {
    violations,
    unexpected,
    slow: durations.all.filter(({ ms }) => ms > LIMIT_MS),
    answers: journal.answers,
    healedMs,
    errors: errors.filter((line) => !line.includes('PostgreSQL does not respond')),
  }
}

function startNothing(): never {
  throw new Error('no such silence')
}

async function untilWritten(session: Session): Promise<void> {
  for (;;) {
    const { status } = await exchange(session, 'PUT', '/ws/rest/test.Note', { data: { title: 'back' } })
    if (status === 200) return
    expect(status).toBeGreaterThanOrEqual(500)
    await sleep(10)
  }
}

describe.for(Object.keys(SILENCES))('PostgreSQL is silent: %s', (how) => {
  // Dropping packets needs root and iptables; the proxy holds them for everybody.
  test.runIf(how !== 'its packets are dropped' || canDropPackets())(
    'every request is answered within 6 s, and the nodes work within 1 s after the silence',
    // A machine that runs other tests may need more than a second to connect.
    { retry: 2 },
    async () => {
      const { healedMs, answers, ...problems } = await endure(how)
      expect(problems).toEqual({ violations: [], unexpected: [], slow: [], errors: [] })
      expect(Object.keys(answers).sort()).toEqual(['200', '503'])
      expect(answers['200']).toBeGreaterThan(NODES * WRITERS_EACH)
      expect(healedMs).toBeLessThan(HEALED_MS)
    },
  )
})

test('the mutant that does not notice silence lets requests wait too long', async () => {
  const { openDatabase: openMutant } = await importMutantStore(
    inject('runFolder'),
    'a silent server is not noticed',
  )
  const { slow } = await endure('all its processes are stopped', (url) => openMutant(url, OPTIONS))
  expect(slow).not.toEqual([])
})

type Open = typeof openDatabase

async function runLongStatement(open: Open): Promise<unknown> {
  const db = await open(await createDatabase(postgres.url), OPTIONS)
  try {
    return await Promise.all([
      db.queryPool.all(`select 'searched' as done from (select pg_sleep(7)) as t`),
      db.transaction(async (tx) => tx.all(`select 'written' as done from (select pg_sleep(7)) as t`)),
    ])
  } catch (error) {
    return error
  } finally {
    await db.close()
  }
}

test('a long statement of a healthy server keeps its own time limit', async () => {
  expect(await runLongStatement(openDatabase)).toEqual([[{ done: 'searched' }], [{ done: 'written' }]])
})

test.each(['long statements of a healthy server are cut', 'every answer cuts the connections'] as const)(
  'it is caught that %s',
  async (mistake) => {
    const { openDatabase: openMutant } = await importMutantStore(inject('runFolder'), mistake)
    expect(await runLongStatement(openMutant)).toBeInstanceOf(Error)
  },
)

/** The process computes for so long that a silent server would have been noticed, while a statement waits. */
async function blockEventLoop(open: Open): Promise<unknown> {
  const db = await open(await createDatabase(postgres.url), OPTIONS)
  try {
    const waiting = db.transaction(async (tx) =>
      tx.all(`select 'written' as done from (select pg_sleep(3)) as t`),
    )
    // The watchdog has asked more than once before.
    await sleep(1_500)
    const untilMs = performance.now() + 5_000
    while (performance.now() < untilMs);
    return await waiting
  } catch (error) {
    return error
  } finally {
    await db.close()
  }
}

test('a blocked event loop is not taken for a silent server', async () => {
  expect(await blockEventLoop(openDatabase)).toEqual([{ done: 'written' }])
  const { openDatabase: openMutant } = await importMutantStore(
    inject('runFolder'),
    'a blocked event loop is taken for silence',
  )
  expect(await blockEventLoop(openMutant)).toBeInstanceOf(Error)
})

/** A row is locked by a transaction when the server becomes silent. Returns how long another one waits for it afterwards. */
async function lockThroughSilence(open: Open): Promise<number> {
  const proxy = await startProxy(await createDatabase(postgres.url))
  const db = await open(proxy.url, OPTIONS)
  try {
    await db.transaction(async (tx) => {
      await tx.run('create table held (id int, value int)')
      await tx.run('insert into held values (1, 0)')
    })
    const update = 'update held set value = value + 1 where id = 1'
    const holder = db.transaction(async (tx) => {
      await tx.run(update)
      proxy.hold()
      await tx.run(update)
    })
    await expect(holder).rejects.toThrow(SILENT)
    proxy.deliver()
    await vi.waitFor(() => db.reader.all('select 1 as one'), 5_000)
    const sinceMs = performance.now()
    await db.transaction((tx) => tx.run(update)).catch(() => undefined)
    return performance.now() - sinceMs
  } finally {
    await db.close()
    await proxy.close()
  }
}

test('a row that was locked before the silence is free after it', async () => {
  expect(await lockThroughSilence(openDatabase)).toBeLessThan(HEALED_MS)
  const { openDatabase: openMutant } = await importMutantStore(
    inject('runFolder'),
    'abandoned sessions keep their locks',
  )
  expect(await lockThroughSilence(openMutant)).toBeGreaterThan(HEALED_MS)
})
