// A damaged backup is refused, whatever was damaged, and leaves nothing behind. A database is refused until its restore has finished.
import { randomBytes, randomInt } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import type * as backupFormat from '../../src/service/backup/backup-format.js'
import type * as completion from '../../src/service/backup/complete-restore.js'
import { completeRestore } from '../../src/service/backup/complete-restore.js'
import { checkFrames } from '../../src/service/backup/backup-format.js'
import { restoreBackup } from '../../src/service/backup/restore.js'
import { createApp } from '../../src/service/create-app.js'
import { readLastSeq } from '../../src/store/log/feed.js'
import { listPurges } from '../../src/store/log/purges.js'
import { openDatabase } from '../../src/store/open.js'
import { hasInternalTables } from '../../src/store/schema/internal-tables.js'
import { cleanUpAfterwards, newDatabase, scratch, verso } from '../cli/program.js'
import { models } from '../models.js'
import { BLIND_TO_RESTORES, WITHOUT_CHECKSUM, WITHOUT_CLAIM } from '../mutants/backup.js'
import { createMutantProgram } from '../mutants/program.js'
import { enter, newLocation, onEveryEngine, startService } from '../targets.js'
import { backupOf, DATABASE_OPTIONS, restoreInto, withClaim } from '../transfer/backup-fixture.js'
import { fill } from '../transfer/transfer-fixture.js'
import { mountSmallDisk, removeSmallDisks } from './small-disk.js'

cleanUpAfterwards()

const DAMAGES = 100
/** A backup from a pipe is restored while it is read. */
const PIPED_DAMAGES = 15
const BLOCK_BYTES = 512

let backup: Buffer = Buffer.alloc(0)
beforeAll(async () => {
  const service = await startService('sqlite')
  await fill(service.app, await enter(service, 'direct'))
  backup = await backupOf(service.app.db)
  await service.close()
})

/** Each returns a copy that differs. */
const DAMAGE_KINDS = [
  (bytes: Buffer) => {
    const copy = Buffer.from(bytes)
    const at = randomInt(copy.length)
    copy[at] = (copy[at] ?? 0) ^ (1 << randomInt(8))
    return copy
  },
  (bytes: Buffer) => bytes.subarray(0, randomInt(bytes.length)),
  (bytes: Buffer) => Buffer.concat([bytes, randomBytes(randomInt(1, 2_000))]),
  (bytes: Buffer) => {
    const blocks = Math.floor(bytes.length / BLOCK_BYTES)
    const first = randomInt(blocks - 1)
    const [a, b] = [first * BLOCK_BYTES, randomInt(first + 1, blocks) * BLOCK_BYTES]
    const copy = Buffer.from(bytes)
    bytes.copy(copy, a, b, b + BLOCK_BYTES)
    bytes.copy(copy, b, a, a + BLOCK_BYTES)
    return copy
  },
] as const

function damage(index: number): Buffer {
  for (;;) {
    const copy = DAMAGE_KINDS[index % DAMAGE_KINDS.length]?.(backup) ?? backup
    if (!copy.equals(backup)) return copy
  }
}

const MEANING = /damaged|incomplete|not a backup|has format/

test(`${DAMAGES} random damages are refused before anything is changed`, async () => {
  await expect(checkFrames(Readable.from([backup]))).resolves.toBeUndefined()
  for (let index = 0; index < DAMAGES; index++) {
    const error: unknown = await checkFrames(Readable.from([damage(index)])).catch(
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toMatch(MEANING)
  }
})

test('a mutant without a checksum is caught', async () => {
  const dist = createMutantProgram(scratch, WITHOUT_CHECKSUM)
  const url = pathToFileURL(path.join(dist, 'service/backup/backup-format.js')).href
  const mutant = (await import(url)) as typeof backupFormat
  let accepted = 0
  for (let index = 0; index < DAMAGES; index++)
    await mutant.checkFrames(Readable.from([damage(index)])).then(
      () => accepted++,
      () => undefined,
    )
  expect(accepted).toBeGreaterThan(0)
})

onEveryEngine((engine) => {
  test('a damaged backup from a pipe is refused, and leaves an empty database', async () => {
    const location = await newLocation(engine)
    const db = await openDatabase(location.url, DATABASE_OPTIONS)
    for (let index = 0; index < PIPED_DAMAGES; index++) {
      const error: unknown = await restoreInto(db, damage(index)).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(ConfigError)
      expect(String(error)).toMatch(MEANING)
      expect(await hasInternalTables(db)).toBe(false)
    }
    await restoreInto(db, backup)
    await db.close()
    location.remove()
  })

  test('a database is refused until its restore has finished, and a repeat of the restore succeeds', async () => {
    const location = await newLocation(engine)
    const db = await openDatabase(location.url, DATABASE_OPTIONS)
    const start = () => createApp({ models, settings: { db: location.url } })
    await expect(interruptRestore(db, start)).rejects.toThrow(/another restore/)
    await expect(start()).rejects.toThrow(/a restore into this database runs or did not finish/)
    await restoreInto(db, backup)
    await db.close()
    await (await start()).close()
    location.remove()
  })

  test('a restore repeats no purge and raises no number in a database that another restore has taken over, but a mutant does', async () => {
    const location = await newLocation(engine)
    const db = await openDatabase(location.url, DATABASE_OPTIONS)
    await restoreInto(db, backup)
    const dist = createMutantProgram(scratch, WITHOUT_CLAIM)
    const url = pathToFileURL(path.join(dist, 'service/backup/complete-restore.js')).href
    const mutant = (await import(url)) as typeof completion
    const read = async () => [await listPurges(db.reader), await readLastSeq(db.reader)]
    const purge = { model: 'crm.Contact', id: 1, seq: 1, atMs: 1, isDeleted: false, fields: {} }
    const header = { takenAtMs: 0 }
    await withClaim(db, async ({ token }) => {
      const lost = { token: token + 1 }
      const before = await read()
      for (const options of [{}, { purges: [purge] }])
        await expect(completeRestore(db, lost, header, options)).rejects.toThrow(/another restore/)
      expect(await read()).toEqual(before)
      await mutant.completeRestore(db, lost, header, { purges: [purge] })
      const after = await read()
      for (const [index, value] of after.entries()) expect(value).not.toEqual(before[index])
    })
    await db.close()
    location.remove()
  })

  /** Another restore begins in the middle and is never continued, as after a crash. */
  async function interruptRestore(
    db: Awaited<ReturnType<typeof openDatabase>>,
    start: () => Promise<unknown>,
  ): Promise<void> {
    const half = Math.floor(backup.length / 2)
    let other: Promise<unknown> | undefined
    await restoreBackup(db, {
      source: (async function* () {
        yield backup.subarray(0, half)
        await expect(start()).rejects.toThrow(ConfigError)
        const hanging = new Promise<Buffer>(() => undefined)
        const begun = new EventEmitter()
        const isBegun = once(begun, 'begun')
        other = restoreBackup(db, {
          source: (async function* () {
            yield backup.subarray(0, half)
            begun.emit('begun')
            yield await hanging
          })(),
        })
        other.catch(() => undefined)
        await isBegun
        yield backup.subarray(half)
      })(),
    })
  }
})

test('a mutant that uses an unfinished restore is caught', async () => {
  const dist = createMutantProgram(scratch, BLIND_TO_RESTORES)
  const url = newDatabase()
  const db = await openDatabase(url, DATABASE_OPTIONS)
  const half = backup.subarray(0, backup.length / 2)
  void restoreBackup(db, {
    source: (async function* () {
      yield half
      yield await new Promise<Buffer>(() => undefined)
    })(),
  }).catch(() => undefined)
  await expect.poll(() => hasInternalTables(db)).toBe(true)
  const list = (main?: string) => verso(['user', 'list', '--db', url], '', {}, main)
  expect((await list()).stderr).toContain('did not finish')
  expect((await list(path.join(dist, 'cli/main.js'))).stderr).not.toContain('did not finish')
  await db.close()
})

test('input that is no backup, and places that take none, are errors that say what to do', async () => {
  const db = newDatabase()
  const file = path.join(scratch, 'whole.backup')
  writeFileSync(file, backup)
  const restored = await verso(['restore', file, '--db', db])
  expect([restored.code, restored.stderr]).toEqual([0, ''])
  const errorOf = async (...args: readonly string[]) => {
    const { code, stderr, stdout } = await verso(args)
    expect([code, stdout]).toEqual([1, ''])
    return stderr
  }
  const other = newDatabase()
  expect(await errorOf('restore', file, '--db', db)).toContain('the database is not empty')
  const foreign = path.join(scratch, 'foreign.db')
  const customers = new DatabaseSync(foreign)
  customers.exec('create table customers (name text)')
  customers.close()
  expect(await errorOf('restore', file, '--db', `sqlite:${foreign}`)).toContain(
    'it has tables of another program: customers',
  )
  expect(await errorOf('backup', path.join(scratch, 'none'), '--db', `sqlite:${foreign}`)).toContain(
    'the database has no tables of Verso',
  )
  const text = path.join(scratch, 'text')
  writeFileSync(text, 'no backup')
  expect(await errorOf('restore', text, '--db', other)).toContain('this is not a backup of Verso')
  writeFileSync(text, 'verso backup 99\n')
  expect(await errorOf('restore', text, '--db', other)).toContain('install the release that made the backup')
  writeFileSync(text, '')
  expect(await errorOf('restore', text, '--db', other)).toContain('this is not a backup of Verso')
  expect(await errorOf('restore', path.join(scratch, 'none'), '--db', other)).toContain('does not exist')
  expect(await errorOf('restore', scratch, '--db', other)).toContain(`${scratch} is a folder, not a file`)
  expect(existsSync(other.slice('sqlite:'.length))).toBe(false)

  expect(await errorOf('backup', file, '--db', db)).toContain('exists already')
  expect(readFileSync(file).equals(backup)).toBe(true)
  const free = path.join(scratch, 'free.backup')
  expect(await errorOf('backup', path.join(scratch, 'no', 'such'), '--db', db)).toContain('does not exist')
  expect(await errorOf('backup', path.join(text, 'x'), '--db', db)).toContain('not a folder')
  expect(await errorOf('backup', free, '--db', other)).toContain('check --db')
  expect(await errorOf('backup', '/dev/full/x', '--db', db)).toContain('/dev/full')
  expect((await verso(['backup', free, '--db', db])).code).toBe(0)
  expect(statSync(free).mode & 0o777).toBe(0o600)
  expect(readdirSync(scratch).filter((name) => name.endsWith('.part'))).toEqual([])
})

test('a full disk ends a backup and a restore with an error, and leaves no incomplete file', async () => {
  const disk = mountSmallDisk(2)
  onTestFinished(removeSmallDisks)
  if (!disk) {
    console.warn('Nothing can be mounted here: a backup on a full disk is not tested')
    return
  }
  const [db, file] = [newDatabase(), path.join(scratch, 'before.backup')]
  writeFileSync(file, backup)
  expect((await verso(['restore', file, '--db', db])).code).toBe(0)
  const full = `sqlite:${path.join(disk.folder, 'restored.db')}`
  const restored = await verso(['restore', file, '--db', full])
  expect([restored.code, restored.stderr]).toEqual([1, expect.stringMatching(/disk is full/)])
  const filler = path.join(disk.folder, 'filler')
  try {
    writeFileSync(filler, Buffer.alloc(4_000_000))
  } catch {
    // The disk is full now.
  }
  const written = await verso(['backup', path.join(disk.folder, 'x.backup'), '--db', db])
  expect([written.code, written.stderr]).toEqual([1, expect.stringMatching(/disk is full/)])
  expect(readdirSync(disk.folder).filter((name) => name.startsWith('x.backup'))).toEqual([])
  rmSync(filler)
  disk.grow(64)
  const repeated = await verso(['restore', file, '--db', full])
  expect([repeated.code, repeated.stderr]).toEqual([0, ''])
})
