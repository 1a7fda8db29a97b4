// Searches on SQLite run outside the event loop, have a time limit, and end with the service.
import { spawn, type ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import type { Database, Row } from '../../src/store/engine/database.js'
import { openSqlite } from '../../src/store/sqlite/sqlite.js'
import { catchError } from '../targets.js'

const LIMIT_MS = 1_500
/** Far more than any test needs, also on a busy machine. */
const AMPLE_MS = 30_000
const ENDLESS = 'with recursive c(n) as (select 1 union all select n + 1 from c) select count(*) as n from c'
const LONG = ENDLESS.replace('from c)', 'from c where n < 1000000)')

let folder: string
let file: string
let db: Database
/** Every child process started during a test: only query workers. */
let started: ChildProcess[]
const note = (message: unknown) => started.push((message as { process: ChildProcess }).process)

beforeEach(async () => {
  started = []
  subscribe('child_process', note)
  folder = mkdtempSync(path.join(tmpdir(), 'verso-searcher-'))
  file = path.join(folder, 'a.db')
  await open(AMPLE_MS)
  await db.transaction((tx) =>
    tx.run('create table item (id integer primary key, code text, size integer) strict'),
  )
})
afterEach(async () => {
  await db.close()
  unsubscribe('child_process', note)
  rmSync(folder, { recursive: true, force: true })
})

async function open(statementTimeoutMs: number): Promise<void> {
  db = await openSqlite(file, { statementTimeoutMs })
}

async function reopen(statementTimeoutMs: number): Promise<void> {
  await db.close()
  await open(statementTimeoutMs)
}

const add = (code: string | null, size: number | null) =>
  db.transaction((tx) => tx.insert('insert into item (code, size) values (?, ?)', [code, size]))

const isOver = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

/** Repeats a search that is rejected as busy: with a short limit the query worker may still be starting. */
async function searchUntilAnswered(sql: string): Promise<Row[]> {
  const sinceMs = performance.now()
  for (;;) {
    try {
      return await db.queryPool.all(sql)
    } catch (error) {
      const isBusy = error instanceof VersoError && error.kind === 'busy'
      if (!isBusy || performance.now() - sinceMs > AMPLE_MS) throw error
    }
  }
}

/** The number of event-loop ticks before the work was done. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isDone = false
  const count = () => {
    if (isDone) return
    turns++
    setImmediate(count)
  }
  setImmediate(count)
  await work()
  isDone = true
  return turns
}

test('a search on the query pool returns what the reader returns', async () => {
  await add('ä "quoted" 漢 🙂\n', 2 ** 53 - 1)
  await add(null, -7)
  await add('', null)
  const statements: [string, (string | number | null)[]][] = [
    ['select * from item order by id', []],
    ['select * from item where code = ? or size is ?', ['', -7]],
    ['select ? as missing, ? as text, ? as whole', [null, 'ß', 0]],
    ['select avg(size) as part from item', []],
    ['select * from item where id > ?', [100]],
    ["select cast(group_concat(code, ',') as blob) as bytes, x'' as empty, x'00ff' as binary from item", []],
    ['select 9e999 as endless, -9e999 as below, 1e-300 as tiny, -0.0 as zero', []],
  ]
  // Statements with answers that JSON would change: they prove that the messages are not JSON.
  const lossy: string[] = []
  for (const [sql, params] of statements) {
    const rows = await db.queryPool.all(sql, params)
    expect(rows).toEqual(await db.reader.all(sql, params))
    if (!isDeepStrictEqual(JSON.parse(JSON.stringify(rows)), rows)) lossy.push(sql)
  }
  expect(lossy).toHaveLength(2)
  expect(await db.queryPool.all('select count(*) as n from item')).toEqual([{ n: 3 }])
  await db.queryPool.snapshot(async (snapshot) => {
    for (const [sql, params] of statements)
      expect(await snapshot.all(sql, params)).toEqual(await db.reader.all(sql, params))
  })
})

test('no query worker starts before the first search, and one serves successive searches', async () => {
  await db.reader.all('select 1 as n')
  expect(started).toHaveLength(0)
  for (let n = 0; n < 5; n++) expect(await db.queryPool.all('select ? as n', [n])).toEqual([{ n }])
  expect(started).toHaveLength(1)
})

test('a search sees the latest commit', async () => {
  for (let n = 1; n <= 50; n++) {
    await add('x', n)
    expect(await db.queryPool.all('select max(size) as n from item')).toEqual([{ n }])
  }
})

test('an invalid statement is an error, and the next search is answered', async () => {
  await expect(db.queryPool.all('select color from item')).rejects.toThrow(/no such column: color/)
  await expect(db.queryPool.all('select ? as n', [])).resolves.toEqual([{ n: null }])
  const tooLarge = 'select 9007199254740993 as n'
  const known = { code: 'ERR_SQLITE_ERROR', message: expect.stringMatching(/too large/) }
  await expect(db.reader.all(tooLarge)).rejects.toMatchObject(known)
  await expect(db.queryPool.all(tooLarge)).rejects.toMatchObject(known)
  await expect(db.queryPool.all("insert into item (code) values ('x')")).rejects.toMatchObject({
    kind: 'busy',
    message: expect.stringMatching(/is read-only/),
  })
  // Only the search is read-only, not the database.
  expect(await db.writability()).toBeUndefined()
  expect(await db.queryPool.all('select count(*) as n from item')).toEqual([{ n: 0 }])
  expect(started).toHaveLength(1)
})

test('a search over the time limit is rejected in time and ended, and later searches are answered', async () => {
  await reopen(LIMIT_MS)
  await searchUntilAnswered('select 1 as n')
  const sinceMs = performance.now()
  expect(await catchError(db.queryPool.all(ENDLESS))).toMatchObject({
    kind: 'busy',
    message: 'The search exceeded its time limit of 1.5 s (--statement-timeout)',
    details: { retryAfterS: 1 },
  })
  const tookMs = performance.now() - sinceMs
  expect(tookMs).toBeGreaterThan(LIMIT_MS * 0.9)
  expect(tookMs).toBeLessThan(LIMIT_MS + 5_000)
  expect(await searchUntilAnswered('select 2 as n')).toEqual([{ n: 2 }])
  await expect.poll(() => started.filter(isOver).length, { timeout: AMPLE_MS }).toBe(1)
})

test('the time limit of a search includes the wait for a query worker', async () => {
  await reopen(LIMIT_MS)
  await searchUntilAnswered('select 1 as n')
  const rejectedMs = await Promise.all(
    [ENDLESS, ENDLESS, 'select 1 as n'].map(async (sql) => {
      expect(await catchError(db.queryPool.all(sql))).toMatchObject({ kind: 'busy' })
      return performance.now()
    }),
  )
  expect(Math.max(...rejectedMs) - Math.min(...rejectedMs)).toBeLessThan(LIMIT_MS / 2)
})

test('a time limit shorter than the start of a query worker still lets later searches succeed', async () => {
  await reopen(30)
  expect(await catchError(db.queryPool.all('select 1 as n'))).toMatchObject({ kind: 'busy' })
  expect(await searchUntilAnswered('select 1 as n')).toEqual([{ n: 1 }])
})

test('the event loop is free during a search, and blocked during a read', async () => {
  expect(await turnsDuring(() => db.reader.all(LONG))).toBeLessThan(3)
  await db.queryPool.all('select 1 as n')
  expect(await turnsDuring(() => db.queryPool.all(LONG))).toBeGreaterThan(100)
})

test('two searches run in parallel: a long one does not block a short one', async () => {
  const long = catchError(db.queryPool.all(ENDLESS))
  expect(await db.queryPool.all('select 1 as n')).toEqual([{ n: 1 }])
  expect(started).toHaveLength(2)
  await db.close()
  await long
})

test('1,000 searches may wait, further ones are rejected, and all waiting ones are answered', async () => {
  const searches = Array.from({ length: 1_010 }, (_, n) => db.queryPool.all('select ? as n', [n]))
  const outcomes = await Promise.allSettled(searches)
  const rows = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []))
  expect(rows).toEqual(Array.from({ length: 1_000 }, (_, n) => ({ n })))
  const rejected = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(rejected).toHaveLength(10)
  for (const { reason } of rejected)
    expect(reason).toMatchObject({
      kind: 'busy',
      message: 'Too many searches are waiting: retry after the seconds in Retry-After',
    })
  expect(started).toHaveLength(2)
})

test('a query worker that dies rejects its search as lost, and is replaced', async () => {
  await db.queryPool.all('select 1 as n')
  const lost = catchError(db.queryPool.all(ENDLESS))
  started[0]?.kill('SIGKILL')
  expect(await lost).toMatchObject({
    kind: 'busy',
    message: 'The search was interrupted: retry after the seconds in Retry-After',
  })
  expect(await db.queryPool.all('select 2 as n')).toEqual([{ n: 2 }])
  expect(started).toHaveLength(2)
})

test('a query worker that dies at start rejects its search, and the next one is answered', async () => {
  const lost = catchError(db.queryPool.all('select 1 as n'))
  started[0]?.kill('SIGKILL')
  expect(await lost).toMatchObject({
    kind: 'busy',
    message: 'The search could not be started: retry after the seconds in Retry-After',
  })
  expect(await db.queryPool.all('select 2 as n')).toEqual([{ n: 2 }])
})

test('SIGINT and SIGTERM do not end a search', async () => {
  await db.queryPool.all('select 1 as n')
  const search = db.queryPool.all(LONG)
  started[0]?.kill('SIGINT')
  started[0]?.kill('SIGTERM')
  expect(await search).toEqual([{ n: 1_000_000 }])
})

test('close rejects running and waiting searches, and leaves no process', async () => {
  await db.queryPool.all('select 1 as n')
  const searches = [ENDLESS, ENDLESS, ENDLESS].map((sql) => catchError(db.queryPool.all(sql)))
  await db.close()
  for (const error of await Promise.all(searches))
    expect(error).toMatchObject({ kind: 'busy', message: 'The database is closed; nothing was changed' })
  expect(started).toHaveLength(2)
  expect(started.every(isOver)).toBe(true)
  expect(await catchError(db.queryPool.all('select 1 as n'))).toMatchObject({
    kind: 'busy',
    message: 'The database is closed; nothing was changed',
  })
  expect(started).toHaveLength(2)
})

/** Ways for a process to end; its output closes when no child process is left. */
const ENDINGS = {
  'that has searched': '',
  'that exits during a search': 'void search(); setImmediate(() => process.exit())',
  'that closes during a search': 'const last = search(); await db.close(); await last',
  'that crashes during a search': 'void search(); setImmediate(() => { throw new Error() })',
}

test.each(Object.entries(ENDINGS))('a process %s ends and leaves no query worker', async (_, ending) => {
  const script = `
    import { openSqlite } from './dist/store/sqlite/sqlite.js'
    const db = await openSqlite(${JSON.stringify(file)}, { statementTimeoutMs: 600_000 })
    const search = () => db.queryPool.all(${JSON.stringify(ENDLESS)}).catch(() => undefined)
    console.log(JSON.stringify(await db.queryPool.all('select count(*) as n from item')))
    ${ending}`
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd })
  let output = ''
  child.stdout.on('data', (text: Buffer) => (output += text.toString()))
  child.stderr.resume()
  await once(child, 'close')
  expect(output).toBe('[{"n":0}]\n')
  expect(child.signalCode).toBe(null)
})
