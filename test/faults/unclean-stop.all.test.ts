// The service after a kill: a lost WAL is refused in words, and damaged pages are found before a request meets them.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { cleanUpAfterwards, MAIN, newDatabase, PASSWORD, start, verso } from '../cli/program.js'
import { HttpClient } from '../http-client.js'
import { createMutantProgram, type Mistake } from '../mutants/program.js'
import { ANY_FAILURE } from '../server-failures.js'
import { PAGE_BYTES, pagesWith, zeroPage } from './damaged-file.js'
import { exchange, type Session } from './load-client.js'

const MODELS = path.join(import.meta.dirname, '../../examples/contacts')
const CONTACTS = '/ws/rest/com.axelor.contact.db.Contact'
const MARK = 'a text that stands on the damaged page'
const RECORDS = 60

cleanUpAfterwards()
const programs = mkdtempSync(path.join(tmpdir(), 'verso-unclean-'))
afterAll(() => {
  rmSync(programs, { recursive: true })
})

async function serve(db: string, { main = MAIN, flags = [] as readonly string[] } = {}) {
  const admin = { VERSO_ADMIN_PASSWORD: PASSWORD }
  return start(['serve', '--models', MODELS, '--db', db, '--port', '0', ...flags], admin, ANY_FAILURE, main)
}

/** A database whose service was killed after writes. */
async function killedService(main = MAIN): Promise<{ db: string; file: string }> {
  const db = newDatabase()
  const service = await serve(db, { main })
  const { cookie } = await HttpClient.login(service.url, 'admin', PASSWORD)
  for (let record = 0; record < RECORDS; record++) {
    const data = { lastName: `N${record}`, notes: MARK.repeat(20) }
    expect((await exchange({ url: service.url, cookie }, 'PUT', CONTACTS, { data })).status).toBe(200)
  }
  service.child.kill('SIGKILL')
  await service.ended()
  return { db, file: db.slice('sqlite:'.length) }
}

function isMarked(file: string): boolean {
  return existsSync(`${file}.open`)
}

async function readiness(session: Session): Promise<unknown> {
  const { body } = await exchange(session, 'GET', '/readyz')
  return (body.data as unknown[])[0]
}

/** Moves all commits into the file, damages a page, and leaves the marker of an unclean stop. */
async function damagedAfterKill(): Promise<string> {
  const { db, file } = await killedService()
  const moving = await serve(db)
  moving.child.kill('SIGTERM')
  expect(await moving.ended()).toBe(0)
  const last = await serve(db)
  last.child.kill('SIGKILL')
  await last.ended()
  const pages = pagesWith(file, MARK)
  zeroPage(file, pages[Math.floor(pages.length / 2)] ?? 0)
  expect(statSync(file).size).toBeGreaterThan(PAGE_BYTES)
  return db
}

test('a start without the WAL of a killed service ends with the reason, for the service and for commands', async () => {
  const { db, file } = await killedService()
  rmSync(`${file}-wal`)
  const before = readFileSync(file)
  for (const command of [
    ['serve', '--models', MODELS, '--db', db, '--port', '0'],
    ['verify', '--models', MODELS, '--db', db],
    ['user', 'list', '--db', db],
  ]) {
    const { code, stderr } = await verso(command)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/last commits is missing[^]*delete .*\.open/)])
    expect(stderr).not.toMatch(/\n +at /)
  }
  expect(readFileSync(file).equals(before)).toBe(true)
})

test('a killed service starts again, reports a sound database, and leaves no marker after a clean stop', async () => {
  const { db, file } = await killedService()
  const service = await serve(db)
  await vi.waitFor(() => {
    expect(service.log()).toContain('the database is sound after an unclean stop')
  }, 30_000)
  service.child.kill('SIGTERM')
  expect(await service.ended()).toBe(0)
  expect(isMarked(file)).toBe(false)
  const next = await serve(db)
  next.child.kill('SIGTERM')
  expect(await next.ended()).toBe(0)
  expect(next.log()).not.toContain('unclean stop')
})

test('damaged pages are found after an unclean stop without a request that meets them, also at the next start', async () => {
  const db = await damagedAfterKill()
  for (let starts = 0; starts < 2; starts++) {
    const service = await serve(db)
    const damaged = {
      writable: false,
      problem: 'damaged',
      reason: expect.stringMatching(/is damaged/) as string,
    }
    await vi.waitFor(async () => {
      expect(await readiness({ url: service.url, cookie: '' })).toEqual(damaged)
    }, 30_000)
    service.child.kill('SIGTERM')
    expect(await service.ended()).toBe(0)
    expect(isMarked(db.slice('sqlite:'.length))).toBe(true)
  }
})

test('a file above the size limit is not checked, and the log says so', async () => {
  const { db } = await killedService()
  const service = await serve(db, { flags: ['--quick-check-size', '1kb'] })
  await vi.waitFor(() => {
    expect(service.log()).toMatch(/"reason":"too-large".*verso verify/)
  }, 30_000)
})

/** Starts the program on a database whose last commits were in a WAL that is lost now. */
async function startWithoutWal({ writer = MAIN, starter = MAIN }): Promise<string> {
  const { db, file } = await killedService(writer)
  rmSync(`${file}-wal`)
  return (await serve(db, { main: starter })).url
}

function mutate(mistake: Mistake): string {
  return path.join(createMutantProgram(programs, mistake), 'cli/main.js')
}

test('the mutant that does not look for the WAL starts without the commits', async () => {
  const starter = mutate({
    file: 'store/sqlite/disk/open-marker.js',
    from: 'isUnclean ? await',
    to: 'false ? await',
  })
  expect(await startWithoutWal({ starter })).not.toBe('')
})

test('the mutant that never notes the first commit starts without the commits', async () => {
  const writer = mutate({
    file: 'store/sqlite/disk/open-marker.js',
    from: 'const hasWal = isReadable ||',
    to: 'const hasWal = false && isReadable &&',
  })
  expect(await startWithoutWal({ writer })).not.toBe('')
})

test('the mutant that skips the check of the pages removes the marker as after a sound one', async () => {
  const main = mutate({
    file: 'store/sqlite/sqlite.js',
    from: 'if (marker.isUnclean &&',
    to: 'if (false &&',
  })
  const db = await damagedAfterKill()
  const service = await serve(db, { main })
  expect(await readiness({ url: service.url, cookie: '' })).toEqual({ writable: true })
  service.child.kill('SIGTERM')
  expect(await service.ended()).toBe(0)
  expect(isMarked(db.slice('sqlite:'.length))).toBe(false)
})
