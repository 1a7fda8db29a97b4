import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { openSqlite } from '../../src/store/sqlite/sqlite.js'
import { catchError } from '../targets.js'

let folder: string
let db: Database
const broken: unknown[] = []

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'verso-sqlite-'))
  broken.length = 0
  db = await openSqlite(path.join(folder, 'a.db'), { onBroken: (error) => broken.push(error) })
  await db.transaction((tx) => tx.run('create table item (id integer primary key, code text) strict'))
})
afterEach(async () => {
  await db.close()
  rmSync(folder, { recursive: true, force: true })
})

const add = () => db.transaction((tx) => tx.insert('insert into item (code) values (?)', ['x']))

test('a deleted database file rejects writes and reports itself broken once', async () => {
  await add()
  rmSync(folder, { recursive: true })
  expect(await catchError(add())).toMatchObject({
    kind: 'busy',
    message: expect.stringMatching(/was removed/),
  })
  await Promise.all([catchError(add()), catchError(add())])
  expect(broken).toHaveLength(1)
})

test('a closed database rejects writes, finishes pending ones, and can be closed again', async () => {
  const last = add()
  await db.close()
  expect(await last).toBe(1)
  expect(await catchError(add())).toMatchObject({
    kind: 'busy',
    message: 'The database is closed; nothing was changed',
  })
  await db.close()
})
