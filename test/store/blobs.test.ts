// Content on disk: records and content stay consistent after crashes, and if a live process is taken for dead.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { insertFile, removeFile } from '../../src/store/records/files.js'
import { openDatabase } from '../../src/store/open.js'
import { createInternalTables } from '../../src/store/schema/internal-tables.js'
import { blobFilesIn, filesFolder } from '../file-audit.js'
import { ENGINES, newLocation, catchError, type DatabaseLocation } from '../targets.js'
import { withoutRecovery } from '../mutants/records.js'

const OPTIONS = { poolSize: 3, statementTimeoutMs: 10_000 }

describe('content on sqlite', () => {
  let location: DatabaseLocation
  let db: Database
  let folder: string
  /** The id of a process that has ended. */
  const dead = spawnSync(process.execPath, ['-e', '']).pid
  const token = 'a'.repeat(16)

  beforeEach(async () => {
    location = await newLocation('sqlite')
    folder = filesFolder(location.url) ?? ''
    db = await openDatabase(location.url, OPTIONS)
    await db.transaction((tx) => createInternalTables(tx, db.dialect))
  })
  afterEach(async () => {
    await db.close()
    location.remove()
  })

  const receive = (from: Database, content = 'content') =>
    from.blobs.receive(Readable.from([Buffer.from(content)]), 1_000)
  /** Stores a file with its row, as an upload does. */
  const storeOne = async (from = db) => {
    const incoming = await receive(from)
    const located = await from.transaction(async (tx) => {
      const facts = { name: 'a', type: 'b', size: incoming.size, sha256: incoming.sha256 }
      const id = await insertFile(tx, facts, incoming.key, 0)
      await from.blobs.store(tx, id, incoming)
      return { id, key: incoming.key, size: incoming.size }
    })
    return { incoming, located }
  }
  const blobPath = (key: string) => path.join(key.slice(0, 2), key)
  const leave = (owner: string, key: string) => {
    mkdirSync(path.join(folder, 'incoming', owner), { recursive: true })
    writeFileSync(path.join(folder, 'incoming', owner, key), 'content')
  }
  const newKey = () => randomBytes(16).toString('hex')

  test('pending content is in a folder of its process that only the owner can read', async () => {
    const { key } = await receive(db)
    const [only = ''] = blobFilesIn(folder)
    expect(only).toMatch(new RegExp(`^incoming/${process.pid}-[0-9a-f]{16}/${key}$`))
    expect(statSync(path.join(folder, only)).mode & 0o777).toBe(0o600)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  test('the folder for content is created with the first file, not before', async () => {
    await db.blobs.recover()
    expect(existsSync(folder)).toBe(false)
  })

  test('finish deletes content without a row and moves content with a row to its place', async () => {
    const lost = await receive(db)
    await db.blobs.finish(lost)
    const { incoming, located } = await storeOne()
    await db.blobs.finish(incoming)
    expect(blobFilesIn(folder)).toEqual([blobPath(located.key)])
  })

  test('content can be opened before it is moved to its place', async () => {
    const { located } = await storeOne()
    expect(await textOf(db, located)).toBe('content')
  })

  test('recovery moves the content of a dead process that has a row, and deletes the rest', async () => {
    const { located } = await storeOne()
    const [arrived = ''] = blobFilesIn(folder)
    leave(`${dead}-${token}`, newKey())
    renameSync(path.join(folder, arrived), path.join(folder, 'incoming', `${dead}-${token}`, located.key))
    await db.blobs.recover()
    expect(blobFilesIn(folder)).toEqual([blobPath(located.key)])
    expect(existsSync(path.join(folder, 'incoming', `${dead}-${token}`))).toBe(false)
    expect(await textOf(db, located)).toBe('content')
  })

  test('recovery treats a former process with the same id as dead', async () => {
    leave(`${process.pid}-${token}`, newKey())
    await db.blobs.recover()
    expect(blobFilesIn(folder)).toEqual([])
  })

  test('recovery keeps pending content of a live process, unless it is older than an hour', async () => {
    const key = newKey()
    const owner = `${process.ppid}-${token}`
    leave(owner, key)
    await db.blobs.recover()
    expect(blobFilesIn(folder)).toEqual([path.join('incoming', owner, key)])
    const before = Date.now() / 1000 - 7_200
    utimesSync(path.join(folder, 'incoming', owner), before, before)
    await db.blobs.recover()
    expect(blobFilesIn(folder)).toEqual([])
  })

  test('forgotten content of this process is deleted after an hour, or at close', async () => {
    const [first, second] = [await receive(db), await receive(db)]
    const arriving = blobFilesIn(folder).find((name) => name.endsWith(first.key)) ?? ''
    const before = Date.now() / 1000 - 7_200
    utimesSync(path.join(folder, arriving), before, before)
    await db.blobs.recover()
    expect(blobFilesIn(folder).map((name) => path.basename(name))).toEqual([second.key])
    await db.close()
    expect(blobFilesIn(folder)).toEqual([])
  })

  test('content that could not be moved is moved by the next recovery', async () => {
    const { incoming, located } = await storeOne()
    const [arrived = ''] = blobFilesIn(folder)
    const file = path.join(folder, blobPath(located.key))
    // A file in place of the folder prevents the move.
    writeFileSync(path.dirname(file), '')
    await db.blobs.finish(incoming)
    expect(blobFilesIn(folder)).toContain(arrived)
    rmSync(path.dirname(file))
    await db.blobs.recover()
    expect(blobFilesIn(folder)).toEqual([blobPath(located.key)])
    expect(db.blobs.countPending()).toBe(0)
  })

  test('recovery never deletes files of others', async () => {
    leave(`${dead}-${token}`, 'notes.txt')
    leave('lost+found', newKey())
    const before = blobFilesIn(folder)
    await db.blobs.recover()
    expect(blobFilesIn(folder)).toEqual(before)
  })

  test.for(['moved in', 'arriving', 'nowhere'])(
    'recovery deletes content of a deleted file, wherever it is: %s',
    async (where) => {
      const { incoming, located } = await storeOne()
      if (where !== 'arriving') await db.blobs.finish(incoming)
      await db.transaction((tx) => removeFile(tx, db.blobs, located))
      if (where === 'nowhere') renameSync(path.join(folder, blobPath(located.key)), `${folder}/elsewhere`)
      await db.blobs.recover()
      expect(blobFilesIn(folder)).toEqual(where === 'nowhere' ? ['elsewhere'] : [])
      expect(await db.reader.all('select key from verso_file_gone')).toEqual([])
      // The write that stored the content may finish only now.
      await db.blobs.finish(incoming)
      expect(await db.blobs.open(located)).toBeUndefined()
    },
  )

  test('a rolled-back delete keeps the content', async () => {
    const { incoming, located } = await storeOne()
    await db.blobs.finish(incoming)
    const rejected = db.transaction(async (tx) => {
      await removeFile(tx, db.blobs, located)
      throw new Error('not after all')
    })
    await expect(rejected).rejects.toThrow('not after all')
    await db.blobs.collect()
    expect(await textOf(db, located)).toBe('content')
  })

  test('open content is read to its end, also if it is deleted meanwhile', async () => {
    const { incoming, located } = await storeOne()
    await db.blobs.finish(incoming)
    const opened = await db.blobs.open(located)
    await db.transaction((tx) => removeFile(tx, db.blobs, located))
    await db.blobs.collect()
    expect(blobFilesIn(folder)).toEqual([])
    expect(await read(opened)).toBe('content')
  })

  test('content with another length than its row is not served', async () => {
    const { incoming, located } = await storeOne()
    await db.blobs.finish(incoming)
    writeFileSync(path.join(folder, blobPath(located.key)), 'cut')
    await expect(db.blobs.open(located)).rejects.toMatchObject({
      kind: 'busy',
      cause: { message: expect.stringMatching(/has 3 bytes instead of 7/) },
    })
  })

  describe('a live process that is taken for dead', () => {
    /** Receives content, then gives up the claim on its folder, but goes on. */
    const supposedDead = async () => {
      const other = await openDatabase(location.url, OPTIONS)
      const incoming = await receive(other)
      await other.blobs.close()
      return { other, incoming }
    }

    test('an upload whose content was collected is rejected as busy and stores no row', async () => {
      const { other, incoming } = await supposedDead()
      await db.blobs.recover()
      const late = other.transaction(async (tx) => {
        const facts = { name: 'a', type: 'b', size: incoming.size, sha256: incoming.sha256 }
        const id = await insertFile(tx, facts, incoming.key, 0)
        await other.blobs.store(tx, id, incoming)
      })
      expect((await catchError(late)).kind).toBe('busy')
      expect(await db.reader.all('select id from verso_file')).toEqual([])
      await other.close()
    })

    test('content with a row is not lost if its process is taken for dead', async () => {
      const other = await openDatabase(location.url, OPTIONS)
      const { incoming, located } = await storeOne(other)
      await other.blobs.close()
      await db.blobs.recover()
      await other.blobs.finish(incoming)
      expect(blobFilesIn(folder)).toEqual([blobPath(located.key)])
      await other.close()
    })
  })

  test('recovery releases an upload that arrived in the current millisecond', async () => {
    await db.blobs.receive(Readable.from([Buffer.from('content')]), 1_000)
    const [file = ''] = blobFilesIn(folder)
    const millisecond = 1_800_000_000_000
    utimesSync(path.join(folder, file), millisecond / 1_000, (millisecond + 0.9) / 1_000)
    const clock = vi.spyOn(Date, 'now').mockReturnValue(millisecond)
    await db.blobs.recover(0)
    clock.mockRestore()
    expect(blobFilesIn(folder)).toEqual([])
  })
})

describe.for(ENGINES)('%s', (engine) => {
  /** The pending content after an upload that was never finished, and a recovery. */
  const leftBy = async (change: (db: Database) => Database) => {
    const location = await newLocation(engine)
    const db = change(await openDatabase(location.url, OPTIONS))
    await db.transaction((tx) => createInternalTables(tx, db.dialect))
    await db.blobs.receive(Readable.from([Buffer.from('content')]), 1_000)
    await db.blobs.recover(0)
    const left = db.blobs.countPending()
    await db.close()
    location.remove()
    return left
  }

  test('recovery releases the content of a forgotten upload', async () => {
    expect(await leftBy((db) => db)).toBe(0)
  })

  test('a mutant without recovery of forgotten uploads is caught', async () => {
    expect(await leftBy(withoutRecovery)).toBe(1)
  })

  test('a forgotten upload that continues is rejected as busy', async () => {
    const location = await newLocation(engine)
    const db = await openDatabase(location.url, OPTIONS)
    await db.transaction((tx) => createInternalTables(tx, db.dialect))
    const incoming = await db.blobs.receive(Readable.from([Buffer.from('content')]), 1_000)
    await db.blobs.recover(0)
    const late = db.transaction((tx) => db.blobs.store(tx, 1, incoming))
    expect((await catchError(late)).kind).toBe('busy')
    await db.blobs.finish(incoming)
    await db.close()
    location.remove()
  })
})

async function textOf(db: Database, located: Parameters<Database['blobs']['open']>[0]) {
  return read(await db.blobs.open(located))
}

async function read(content: Readable | undefined): Promise<string | undefined> {
  if (!content) return undefined
  const chunks: Buffer[] = []
  for await (const chunk of content) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
