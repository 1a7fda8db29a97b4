// Every SQLite error that is no defect has a kind, a status, and a condition for later writes.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { STRICT } from '../../src/http/compat/protocol.js'
import { buildErrorResponse } from '../../src/http/route/errors.js'
import { openConnection, SqliteSession } from '../../src/store/sqlite/connection.js'
import { translateSqliteError, classifyUnwritable } from '../../src/store/sqlite/errors.js'
import { damagePages } from '../faults/damaged-file.js'

const scratch = mkdtempSync(path.join(tmpdir(), 'verso-errors-'))
afterAll(() => {
  rmSync(scratch, { recursive: true })
})

const CASES = [
  { name: 'SQLITE_BUSY', code: 5, status: 503, words: /Another process has locked the database/ },
  { name: 'SQLITE_BUSY_SNAPSHOT', code: 517, status: 503, words: /Another process has locked the database/ },
  { name: 'SQLITE_READONLY', code: 8, status: 503, words: /is read-only/, trouble: 'read-only' },
  { name: 'SQLITE_READONLY_DBMOVED', code: 1032, status: 503, words: /is read-only/, trouble: 'read-only' },
  { name: 'SQLITE_IOERR', code: 10, status: 503, words: /disk has failed/, trouble: 'failed' },
  { name: 'SQLITE_IOERR_WRITE', code: 778, status: 503, words: /disk has failed/, trouble: 'failed' },
  { name: 'SQLITE_CORRUPT', code: 11, status: 503, words: /is damaged/, trouble: 'damaged' },
  { name: 'SQLITE_CORRUPT_INDEX', code: 779, status: 503, words: /is damaged/, trouble: 'damaged' },
  { name: 'SQLITE_FULL', code: 13, status: 507, words: /disk is full/, trouble: 'full' },
  { name: 'SQLITE_CANTOPEN', code: 14, status: 503, words: /cannot be opened/ },
  { name: 'SQLITE_CANTOPEN_SYMLINK', code: 1550, status: 503, words: /cannot be opened/ },
  { name: 'SQLITE_NOTADB', code: 26, status: 503, words: /is damaged/, trouble: 'damaged' },
] as const

test.for(CASES)('$name is rejected with its kind, never as internal', (each) => {
  const { code, status, words } = each
  const error = Object.assign(new Error('in the words of SQLite'), {
    code: 'ERR_SQLITE_ERROR',
    errcode: code,
  })
  const translated = translateSqliteError(error)
  expect(classifyUnwritable(translated)).toBe('trouble' in each ? each.trouble : undefined)
  expectAnswer(translated, status, words)
})

test('errors of real statements, which have only a message, are classified as well', () => {
  const damaged = path.join(scratch, 'damaged.db')
  const writer = openConnection(damaged, false)
  writer.exec('create table item (id integer primary key, text)')
  const insert = writer.prepare('insert into item (text) values (?)')
  for (let row = 0; row < 100; row++) insert.run('x'.repeat(1_000))
  writer.exec('pragma wal_checkpoint(truncate)')
  damagePages(damaged, (page) => page > 3)
  const noDatabase = path.join(scratch, 'text.db')
  writeFileSync(noDatabase, 'this is no database, but a text of some length\n'.repeat(100))

  const reader = new SqliteSession(openConnection(damaged, true))
  expectAnswer(
    errorOf(() => reader.all('select count(text) from item')),
    503,
    /is damaged/,
  )
  expectAnswer(
    errorOf(() => reader.run('delete from item')),
    503,
    /is read-only/,
  )
  expectAnswer(translateSqliteError(errorOf(() => openConnection(noDatabase, true))), 503, /is damaged/)
  expectAnswer(
    translateSqliteError(errorOf(() => openConnection(path.join(scratch, 'none/x.db'), true))),
    503,
    /cannot be opened/,
  )
  reader.close()
  writer.close()
})

test('a read transaction that met damage is closed, and the next one sees later commits', () => {
  const file = path.join(scratch, 'over.db')
  const writer = new SqliteSession(openConnection(file, false))
  writer.exec('create table item (id integer primary key, text)')
  writer.exec('create table other (id integer primary key)')
  for (let row = 0; row < 100; row++) writer.run('insert into item (text) values (?)', ['x'.repeat(1_000)])
  writer.checkpoint()
  damagePages(file, (page) => page > 3)
  const seen: unknown[] = []
  const reader = new SqliteSession(openConnection(file, true), (error) =>
    seen.push(classifyUnwritable(error)),
  )
  const read = () => reader.withSnapshot(() => errorOf(() => reader.all('select count(text) from item')))
  expectAnswer(read(), 503, /is damaged/)
  expect([reader.connection.isTransaction, seen]).toEqual([false, ['damaged']])
  writer.run('insert into other (id) values (1)')
  expect(reader.withSnapshot(() => reader.all('select id from other'))).toEqual([{ id: 1 }])
  reader.close()
  writer.close()
})

function expectAnswer(error: unknown, status: number, words: RegExp): void {
  expect(error).toBeInstanceOf(VersoError)
  const context = { log: pino({ level: 'silent' }), protocol: STRICT, schemes: [], basePath: '' }
  const asked = { requestId: 'r', accept: undefined, isAboutRecords: true, isPatch: false }
  const answer = buildErrorResponse(context, error, asked)
  expect([answer.status, answer.body]).toEqual([status, expect.stringMatching(words)])
  expect(answer.headers).toHaveProperty('retry-after')
}

function errorOf(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('this was to fail, and was done')
}
