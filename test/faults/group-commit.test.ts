// SQLite only: one writer commits in groups, and waits for other processes without holding the event loop.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Refusal } from '../../src/errors.js'
import { UniqueViolation, type Database } from '../../src/store/database.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { HttpClient } from '../http-client.js'
import { newPlace, PASSWORD, refusalOf, startService, USERNAME, type Place } from '../targets.js'
import { answersBeforeCommit } from '../twins.js'
import { exchange } from './exchange.js'

const INSERT = 'insert into item (code) values (?)'
const script = fileURLToPath(new URL('hold-lock.mjs', import.meta.url))

let place: Place
let file: string
let db: Database

beforeEach(async () => {
  place = await newPlace('sqlite')
  file = place.url.slice('sqlite:'.length)
  db = await openSqlite(file)
  await db.transaction((tx) => tx.run('create table item (id integer primary key, code text unique)'))
})
afterEach(async () => {
  await db.close()
  place.remove()
})

test('what arrives together is committed together', async () => {
  const counts = await Promise.all(
    [1, 2, 3].map((code) =>
      db.transaction(async (tx) => {
        await tx.insert(INSERT, [String(code)])
        return [await countItems(tx), await countItems(db.reader)]
      }),
    ),
  )
  // Each sees those before it, and nobody else sees any of them yet.
  expect(counts).toEqual([
    [1, 0],
    [2, 0],
    [3, 0],
  ])
})

test('a member that fails does not disturb its neighbours', async () => {
  const insert = (code: string) => db.transaction((tx) => tx.insert(INSERT, [code]))
  const refuse = (error: Error) =>
    db.transaction(async (tx) => {
      await tx.insert(INSERT, [`refused: ${error.message}`])
      throw error
    })
  const [defect, refusal] = [new TypeError('a defect'), new Refusal('invalid', 'a refusal')]
  const outcomes = await Promise.allSettled([
    ...[insert('a'), insert('a'), refuse(refusal), insert('b')],
    ...[refuse(defect), insert('b'), insert('c')],
  ])
  const done = { status: 'fulfilled', value: expect.any(Number) }
  const twice = { status: 'rejected', reason: expect.any(UniqueViolation) }
  expect(outcomes).toEqual([
    ...[done, twice, { status: 'rejected', reason: refusal }, done],
    ...[{ status: 'rejected', reason: defect }, twice, done],
  ])
  expect(await db.reader.all('select code from item order by id')).toEqual(
    ['a', 'b', 'c'].map((code) => ({ code })),
  )
})

test('an answer leaves after its COMMIT: another connection sees the row at once', async () => {
  expect(await unseenAnswers(db)).toBe(0)
})

test('a store that answers before it commits is caught', async () => {
  expect(await unseenAnswers(answersBeforeCommit(db, 1))).toBeGreaterThan(0)
})

test('synchronous is FULL and the journal is a WAL, also on a file that was there before', async () => {
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

test('a write waits for another process without holding the event loop, and succeeds', async () => {
  const released = await holdLock(1_000)
  const loop = watchLoop()
  await Promise.all(['a', 'b'].map((code) => db.transaction((tx) => tx.insert(INSERT, [code]))))
  expect(loop.longestMs()).toBeLessThan(500)
  expect(await countItems(db.reader)).toBe(2)
  await released()
})

test('a write that has waited too long is refused, and was not done', async () => {
  const released = await holdLock(60_000)
  const late = (code: string) => db.transaction((tx) => tx.insert(INSERT, [code]))
  const refusals = await Promise.all([refusalOf(late('a')), refusalOf(late('b'))])
  expect(refusals.map(({ kind }) => kind)).toEqual(['busy', 'busy'])
  await released()
  expect(await countItems(db.reader)).toBe(0)
  await db.transaction((tx) => tx.insert(INSERT, ['c']))
})

test('over HTTP such a write is a 503 with Retry-After, and reads go on', async () => {
  const service = await startService('sqlite', { place, expects: ['busy'] })
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

/** How many of 200 answers came before a second connection could see what they say. */
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

/** A process that has the write lock; answers how to end it, if it has not ended yet. */
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

/** How long nothing else could run. */
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
