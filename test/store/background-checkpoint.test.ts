// Commits that follow a long snapshot of another connection do not wait until the whole WAL is copied.
import { afterEach, expect, test, vi } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { BackgroundCheckpoint } from '../../src/store/sqlite/disk/background-checkpoint.js'
import { openSqlite } from '../../src/store/sqlite/sqlite.js'
import { SqliteQueryPool } from '../../src/store/sqlite/query-pool.js'
import { newLocation } from '../targets.js'

const LONG_FRAMES = 6_000
const PAGES_PER_COMMIT = 500
const PAGE_BYTES = 4_096
const TIMEOUT = { timeout: 20_000 }

const releases: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const release of releases.splice(0).reverse()) await release()
})

async function openFile(): Promise<{ db: Database; file: string }> {
  const location = await newLocation('sqlite')
  releases.push(() => {
    location.remove()
  })
  const file = location.url.slice('sqlite:'.length)
  const db = await openSqlite(file)
  releases.push(() => db.close())
  await db.transaction((tx) => tx.run('create table item (id integer primary key, content blob)'))
  return { db, file }
}

/** The frames of the WAL that are not in the database file yet. */
async function countLeft(db: Database): Promise<number> {
  const [row] = await db.reader.all('pragma wal_checkpoint(noop)')
  return Number(row?.['log']) - Number(row?.['checkpointed'])
}

/** A commit of many pages. */
async function commit(db: Database): Promise<void> {
  await db.transaction((tx) =>
    tx.run('insert into item (content) values (zeroblob(?))', [PAGES_PER_COMMIT * PAGE_BYTES]),
  )
}

async function commitUntilLong(db: Database): Promise<void> {
  for (let left = 0; left < LONG_FRAMES; left = await countLeft(db)) await commit(db)
}

/** Reads one snapshot in another process, as a backup does. Returns the function that ends it. */
async function holdSnapshot(file: string): Promise<() => Promise<void>> {
  const pool = new SqliteQueryPool(file, { timeoutMs: 60_000 })
  releases.push(() => pool.close())
  let end: () => void = () => undefined
  let work: Promise<void> = Promise.resolve()
  await new Promise<void>((resolve, reject) => {
    work = pool.longSnapshot(async (snapshot) => {
      await snapshot.all('select count(*) from item')
      resolve()
      await new Promise<void>((ended) => (end = ended))
    })
    work.catch(reject)
  })
  return async () => {
    end()
    await work
  }
}

/** Returns the frames that are left for the first commit after a long snapshot. */
async function runLongSnapshot(db: Database, file: string, waitMs = 30_000): Promise<number> {
  const end = await holdSnapshot(file)
  await commitUntilLong(db)
  // Longer than the interval of the check.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  await commit(db)
  expect(await countLeft(db)).toBeGreaterThan(LONG_FRAMES)
  await end()
  const deadlineMs = performance.now() + waitMs
  while ((await countLeft(db)) > 1_000 && performance.now() < deadlineMs)
    await new Promise((resolve) => setTimeout(resolve, 50))
  return countLeft(db)
}

test('a WAL that was long because of a snapshot is copied without a commit that waits for it', async () => {
  const { db, file } = await openFile()
  expect(await runLongSnapshot(db, file)).toBeLessThanOrEqual(1_000)
})

test('the mutant without a copy in the background leaves all to the next commit', async () => {
  const check = vi.spyOn(BackgroundCheckpoint.prototype, 'check').mockImplementation(() => undefined)
  releases.push(() => {
    check.mockRestore()
  })
  const { db, file } = await openFile()
  expect(await runLongSnapshot(db, file, 2_000)).toBeGreaterThan(LONG_FRAMES)
  await commit(db)
  expect(await countLeft(db)).toBeLessThanOrEqual(1_000)
})

test('after it, commits copy the WAL again, so it does not grow', async () => {
  const { db, file } = await openFile()
  await runLongSnapshot(db, file)
  await expect
    .poll(async () => {
      await commit(db)
      await commit(db)
      await commit(db)
      return countLeft(db)
    }, TIMEOUT)
    .toBeLessThanOrEqual(1_000)
})

test('a database closes at once while a snapshot of another process keeps the WAL long', async () => {
  const { db, file } = await openFile()
  const end = await holdSnapshot(file)
  await commitUntilLong(db)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const startMs = performance.now()
  await db.close()
  expect(performance.now() - startMs).toBeLessThan(20_000)
  await end()
})
