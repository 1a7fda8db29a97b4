// Damages random bytes of a database file. `verify` finds all damage of pages, and each record that differs from the Log.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../src/service/create-app.js'
import { findCounterDifferences } from '../../src/service/maintenance/counters.js'
import {
  checkIntegrity,
  runStorageCheck,
  STORAGE_CHECKS,
} from '../../src/service/maintenance/verification.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { newLocation, PASSWORD, startService, USERNAME, type DatabaseLocation } from '../targets.js'
import { models as fixtures } from '../models.js'
import { PAGE_BYTES } from './damaged-file.js'

const RECORDS = 120
const DAMAGES = 240
/** Nothing contradicts wrong values in them. `verify` names them. */
const UNCHECKED_TABLES = /^verso_/
const FIRST_SEED = 20_260_101

let sound: DatabaseLocation
let file: string
let copy: string
let soundRows: ReadonlyMap<string, string>

beforeAll(async () => {
  sound = await newLocation('sqlite')
  file = sound.url.slice('sqlite:'.length)
  copy = path.join(path.dirname(file), 'damaged.db')
  const service = await startService('sqlite', { location: sound })
  const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
  for (let record = 0; record < RECORDS; record++)
    await client.create('crm.Contact', { firstName: `N${record}`, notes: `${record} `.repeat(100) })
  soundRows = await readRows(service.app.db)
  await service.close()
})
afterAll(() => {
  sound.remove()
})

/** Columns that the Log does not have. */
const UNLOGGED_COLUMNS = /^(created|updated)|password|secret|hash|token/i

/** The rows of each table as text. A table that cannot be read differs from any other. */
async function readRows(db: Database): Promise<Map<string, string>> {
  const rows = new Map<string, string>()
  const tables = await db.reader.all("select name from sqlite_schema where type = 'table' order by name")
  for (const { name } of tables) {
    const text = await db.reader
      .all(`select * from "${String(name)}" order by rowid`)
      .then(
        (found) => JSON.stringify(found, (key, value: unknown) => (UNLOGGED_COLUMNS.test(key) ? '' : value)),
        String,
      )
    rows.set(String(name), text)
  }
  return rows
}

/** The tables that a client or the service reads differently than before the damage. */
async function findChangedTables(): Promise<string[]> {
  const db = await openCopy()
  try {
    const rows = await readRows(db)
    return [...soundRows.keys()].filter((name) => rows.get(name) !== soundRows.get(name))
  } finally {
    await db.close()
  }
}

async function openCopy(): Promise<Database> {
  return openDatabase(`sqlite:${copy}`, { poolSize: 1, statementTimeoutMs: 60_000 })
}

/** Runs the checks of `verso verify`. A database that does not open is found, too. */
async function isFound(checks = STORAGE_CHECKS): Promise<boolean> {
  const db = await openCopy()
  const { findings } = await runStorageCheck('integrity', checkIntegrity, db)
  await db.close()
  if (findings.count > 0) return true
  const app = await createApp({ models: fixtures, settings: { db: `sqlite:${copy}`, diskReserveBytes: 0 } })
  try {
    for (const [name, check] of Object.entries(checks))
      if ((await runStorageCheck(name, check, app)).findings.count > 0) return true
    for (const model of app.catalog.storedModels)
      if ((await findCounterDifferences(app, model)).length > 0) return true
    return false
  } finally {
    await app.close()
  }
}

function createRandom(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >>> 8) % limit
  }
}

const KINDS = {
  'a flipped bit': (bytes: Buffer, random: (limit: number) => number) => {
    const at = random(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8))
  },
  '64 random bytes': (bytes: Buffer, random: (limit: number) => number) => {
    const start = random(bytes.length - 64)
    for (let at = start; at < start + 64; at++) bytes[at] = random(256)
  },
  zeros: (bytes: Buffer, random: (limit: number) => number) => bytes.fill(0, random(bytes.length)),
}

const withoutLog = { files: STORAGE_CHECKS['files'] ?? expect.fail('there is no check of files') }

test('verify finds random damage that changes what can be read, except in internal tables; a verify that skips the Log does not', async () => {
  const random = createRandom(FIRST_SEED)
  const base = readFileSync(file)
  const [missed, missedWithoutLog]: [string[], string[]] = [[], []]
  let changed = 0
  for (let damage = 0; damage < DAMAGES; damage++) {
    const kind = Object.keys(KINDS)[damage % 3] as keyof typeof KINDS
    const page = random(base.length / PAGE_BYTES)
    const bytes = Buffer.from(base)
    KINDS[kind](bytes.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES), random)
    writeCopy(bytes)
    const tables = await findChangedTables().catch(() => ['of no name: the database does not open'])
    if (tables.length === 0) continue
    changed++
    const wasFound = async (checks: typeof STORAGE_CHECKS) => {
      writeCopy(bytes)
      return isFound(checks).catch(() => true)
    }
    const isMissed = !(await wasFound(STORAGE_CHECKS))
    const records = tables.filter((name) => !UNCHECKED_TABLES.test(name))
    if (isMissed) missed.push(...records.map((name) => `${kind} on page ${page}: ${name}`))
    if (isMissed || !(await wasFound(withoutLog))) missedWithoutLog.push(...records)
  }
  expect(missed).toEqual([])
  expect(changed).toBeGreaterThan(20)
  expect(missedWithoutLog.length).toBeGreaterThan(0)
})

/** Replaces the copy, and removes what the last one has left. */
function writeCopy(bytes: Buffer): void {
  for (const suffix of ['-wal', '-shm', '.open']) rmSync(`${copy}${suffix}`, { force: true })
  writeFileSync(copy, bytes)
}
