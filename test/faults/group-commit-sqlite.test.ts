// SQLite only: one writer commits in groups, and waits for other processes without blocking the event loop.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import type { Database } from '../../src/store/engine/database.js'
import { UniqueViolation } from '../../src/store/engine/unique-violation.js'
import { openSqlite } from '../../src/store/sqlite/sqlite.js'
import { HttpClient } from '../http-client.js'
import {
  newLocation,
  PASSWORD,
  catchError,
  startService,
  USERNAME,
  type DatabaseLocation,
} from '../targets.js'
import { answersBeforeCommit } from '../mutants/records.js'
import { exchange } from './load-client.js'

const INSERT = 'insert into item (code) values (?)'
const script = fileURLToPath(new URL('hold-lock.mjs', import.meta.url))

let location: DatabaseLocation
let file: string
let db: Database

beforeEach(async () => {
  location = await newLocation('sqlite')
  file = location.url.slice('sqlite:'.length)
  db = await openSqlite(file)
  await db.transaction((tx) => tx.run('create table item (id integer primary key, code text unique)'))
})
afterEach(async () => {
  await db.close()
  location.remove()
})

test('concurrent transactions share one commit', async () => {
  const counts = await Promise.all(
    [1, 2, 3].map((code) =>
      db.transaction(async (tx) => {
        await tx.insert(INSERT, [String(code)])
        return [await countItems(tx), await countItems(db.reader)]
      }),
    ),
  )
  // Each sees the rows of those before it, and other connections see none of them yet.
  expect(counts).toEqual([
    [1, 0],
    [2, 0],
    [3, 0],
  ])
})

test('a failed transaction does not affect the others of its group commit', async () => {
  const insert = (code: string) => db.transaction((tx) => tx.insert(INSERT, [code]))
  const reject = (error: Error) =>
    db.transaction(async (tx) => {
      await tx.insert(INSERT, [`refused: ${error.message}`])
      throw error
    })
  const [defect, error] = [new TypeError('a defect'), new VersoError('invalid', 'a refusal')]
  const outcomes = await Promise.allSettled([
    ...[insert('a'), insert('a'), reject(error), insert('b')],
    ...[reject(defect), insert('b'), insert('c')],
  ])
  const done = { status: 'fulfilled', value: expect.any(Number) }
  const twice = { status: 'rejected', reason: expect.any(UniqueViolation) }
  expect(outcomes).toEqual([
    ...[done, twice, { status: 'rejected', reason: error }, done],
    ...[{ status: 'rejected', reason: defect }, twice, done],
  ])
  expect(await db.reader.all('select code from item order by id')).toEqual(
    ['a', 'b', 'c'].map((code) => ({ code })),
  )
})

test('a write is answered after its COMMIT: another connection sees the row immediately', async () => {
  expect(await unseenAnswers(db)).toBe(0)
})

test('the mutant that answers before it commits is caught', async () => {
  expect(await unseenAnswers(answersBeforeCommit(db, 1))).toBeGreaterThan(0)
})

test('every connection uses synchronous FULL and a WAL journal, also on an existing file', async () => {
  await db.close()
  db = await openSqlite(file)
  const settings = [[{ synchronous: 2 }], [{ journal_mode: 'wal' }]]
  expect([await db.reader.all('pragma synchronous'), await db.reader.all('pragma journal_mode')]).toEqual(
    settings,
  )
  const ofWriter = await db.transaction(async (tx) => [
    await tx.all('pragma synchronous'),
    await tx.all('pragma journal_mode'),
  ])
  expect(ofWriter).toEqual(settings)
})

test('a write waits for the lock of another process without blocking the event loop, and succeeds', async () => {
  const released = await holdLock(2_000)
  const loop = watchLoop()
  await Promise.all(['a', 'b'].map((code) => db.transaction((tx) => tx.insert(INSERT, [code]))))
  expect(loop.longestMs()).toBeLessThan(1_000)
  expect(await countItems(db.reader)).toBe(2)
  await released()
})

test('a write that waits too long for a lock is rejected as busy, and has no effect', async () => {
  const released = await holdLock(60_000)
  const late = (code: string) => db.transaction((tx) => tx.insert(INSERT, [code]))
  const errors = await Promise.all([catchError(late('a')), catchError(late('b'))])
  expect(errors.map(({ kind }) => kind)).toEqual(['busy', 'busy'])
  await released()
  expect(await countItems(db.reader)).toBe(0)
  await db.transaction((tx) => tx.insert(INSERT, ['c']))
})

test('over HTTP, a write that waits too long for a lock is 503 with Retry-After, and reads succeed', async () => {
  const service = await startService('sqlite', { location, expects: ['busy'] })
  const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
  const released = await holdLock(60_000)
  const write = exchange(client, 'PUT', '/ws/rest/test.Note', { data: { title: 'late' } })
  const read = await exchange(client, 'GET', '/ws/rest/test.Note')
  const { status, headers, body } = await write
  expect(read.status).toBe(200)
  expect({ status, retryAfter: headers['retry-after'], data: body.data }).toMatchObject({
    status: 503,
    retryAfter: '1',
    data: { kind: 'busy' },
  })
  await released()
  expect((await exchange(client, 'PUT', '/ws/rest/test.Note', { data: { title: 'in time' } })).status).toBe(
    200,
  )
  await service.close()
})

async function countItems(queryable: Pick<Database['reader'], 'all'>): Promise<number> {
  const [row] = await queryable.all('select count(*) as count from item')
  return Number(row?.['count'])
}

/** The number of 200 responses that came before a second connection could see their row. */
async function unseenAnswers(database: Database): Promise<number> {
  const other = new DatabaseSync(file, { readOnly: true })
  const look = other.prepare('select count(*) as count from item where id = ?')
  const isSeen = (id: number) => (look.all(id) as { count: number }[])[0]?.count === 1
  let unseen = 0
  for (let group = 0; group < 20; group++) {
    const writes = Array.from({ length: 10 }, (_, index) =>
      database.transaction((tx) => tx.insert(INSERT, [`${group}/${index}`])),
    )
    await Promise.all(writes.map(async (write) => (unseen += isSeen(await write) ? 0 : 1)))
  }
  other.close()
  return unseen
}

/** Starts a process that holds the write lock; returns a function that ends it. */
async function holdLock(ms: number): Promise<() => Promise<void>> {
  const child = fork(script, [file, String(ms)], {
    execArgv: [],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve())
    void gone.then(() => reject(new Error('the lock was not taken')))
  })
  return async () => {
    child.kill('SIGKILL')
    await gone
  }
}

/** Measures the longest time that the event loop was blocked. */
function watchLoop(): { longestMs: () => number } {
  let [last, longest] = [performance.now(), 0]
  const timer = setInterval(() => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
  }, 10)
  return {
    longestMs: () => {
      clearInterval(timer)
      return Math.max(longest, performance.now() - last)
    },
  }
}
