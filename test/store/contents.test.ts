// Content on disk: whatever a process has left behind, and whoever believes what of whom, records and content fit together.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { insertFile, removeFile } from '../../src/store/records/files.js'
import { openDatabase } from '../../src/store/open.js'
import { createInternalTables } from '../../src/store/schema/internal-tables.js'
import { contentsIn, filesFolder } from '../file-audit.js'
import { ENGINES, newPlace, refusalOf, type Place } from '../targets.js'
import { withoutRecovery } from '../mutants/records.js'

const OPTIONS = { poolSize: 3, statementTimeoutMs: 10_000 }

describe('sqlite', () => {
  let place: Place
  let db: Database
  let folder: string
  /** A process that is no more. */
  const dead = spawnSync(process.execPath, ['-e', '']).pid
  const token = 'a'.repeat(16)

  beforeEach(async () => {
    place = await newPlace('sqlite')
    folder = filesFolder(place.url) ?? ''
    db = await openDatabase(place.url, OPTIONS)
    await db.transaction((tx) => createInternalTables(tx, db.dialect))
  })
  afterEach(async () => {
    await db.close()
    place.remove()
  })

  const receive = (from: Database, content = 'content') =>
    from.blobs.receive(Readable.from([Buffer.from(content)]), 1_000)
  /** A file with its row, as after an upload. */
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
  const placeOf = (key: string) => path.join(key.slice(0, 2), key)
  const leave = (owner: string, key: string) => {
    mkdirSync(path.join(folder, 'incoming', owner), { recursive: true })
    writeFileSync(path.join(folder, 'incoming', owner, key), 'content')
  }
  const newKey = () => randomBytes(16).toString('hex')

  test('what has arrived is in a folder of its process, and is for nobody else’s eyes', async () => {
    const { key } = await receive(db)
    const [only = ''] = contentsIn(folder)
    expect(only).toMatch(new RegExp(`^incoming/${process.pid}-[0-9a-f]{16}/${key}$`))
    expect(statSync(path.join(folder, only)).mode & 0o777).toBe(0o600)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  test('a folder is made when the first file comes, and not before', async () => {
    await db.blobs.recover()
    expect(existsSync(folder)).toBe(false)
  })

  test('content without a row goes when its write is over, content with one moves in', async () => {
    const lost = await receive(db)
    await db.blobs.finish(lost)
    const { incoming, located } = await storeOne()
    await db.blobs.finish(incoming)
    expect(contentsIn(folder)).toEqual([placeOf(located.key)])
  })

  test('content is found before it has moved in', async () => {
    const { located } = await storeOne()
    expect(await textOf(db, located)).toBe('content')
  })

  test('what a dead process left moves in if it has a row, and goes if it has none', async () => {
    const { located } = await storeOne()
    const [arrived = ''] = contentsIn(folder)
    leave(`${dead}-${token}`, newKey())
    renameSync(path.join(folder, arrived), path.join(folder, 'incoming', `${dead}-${token}`, located.key))
    await db.blobs.recover()
    expect(contentsIn(folder)).toEqual([placeOf(located.key)])
    expect(existsSync(path.join(folder, 'incoming', `${dead}-${token}`))).toBe(false)
    expect(await textOf(db, located)).toBe('content')
  })

  test('a process that had our number before is dead, too', async () => {
    leave(`${process.pid}-${token}`, newKey())
    await db.blobs.recover()
    expect(contentsIn(folder)).toEqual([])
  })

  test('what a living process receives is left alone, unless it has been there for an hour', async () => {
    const key = newKey()
    const owner = `${process.ppid}-${token}`
    leave(owner, key)
    await db.blobs.recover()
    expect(contentsIn(folder)).toEqual([path.join('incoming', owner, key)])
    const before = Date.now() / 1000 - 7_200
    utimesSync(path.join(folder, 'incoming', owner), before, before)
    await db.blobs.recover()
    expect(contentsIn(folder)).toEqual([])
  })

  test('what an upload of this process has forgotten goes: once it has been there for an hour, or at the end', async () => {
    const [first, second] = [await receive(db), await receive(db)]
    const arriving = contentsIn(folder).find((name) => name.endsWith(first.key)) ?? ''
    const before = Date.now() / 1000 - 7_200
    utimesSync(path.join(folder, arriving), before, before)
    await db.blobs.recover()
    expect(contentsIn(folder).map((name) => path.basename(name))).toEqual([second.key])
    await db.close()
    expect(contentsIn(folder)).toEqual([])
  })

  test('what could not be settled is settled later', async () => {
    const { incoming, located } = await storeOne()
    const [arrived = ''] = contentsIn(folder)
    const place = path.join(folder, placeOf(located.key))
    // Nothing moves in where a file stands in the place of its folder.
    writeFileSync(path.dirname(place), '')
    await db.blobs.finish(incoming)
    expect(contentsIn(folder)).toContain(arrived)
    rmSync(path.dirname(place))
    await db.blobs.recover()
    expect(contentsIn(folder)).toEqual([placeOf(located.key)])
    expect(db.blobs.countPending()).toBe(0)
  })

  test('what is not ours is never removed', async () => {
    leave(`${dead}-${token}`, 'notes.txt')
    leave('lost+found', newKey())
    const before = contentsIn(folder)
    await db.blobs.recover()
    expect(contentsIn(folder)).toEqual(before)
  })

  test.for(['moved in', 'arriving', 'nowhere'])(
    'what was to be removed goes, where it is: %s',
    async (where) => {
      const { incoming, located } = await storeOne()
      if (where !== 'arriving') await db.blobs.finish(incoming)
      await db.transaction((tx) => removeFile(tx, db.blobs, located))
      if (where === 'nowhere') renameSync(path.join(folder, placeOf(located.key)), `${folder}/elsewhere`)
      await db.blobs.recover()
      expect(contentsIn(folder)).toEqual(where === 'nowhere' ? ['elsewhere'] : [])
      expect(await db.reader.all('select key from verso_file_gone')).toEqual([])
      // The write that brought it may end only now.
      await db.blobs.finish(incoming)
      expect(await db.blobs.open(located)).toBeUndefined()
    },
  )

  test('what a removal that is rolled back would have removed stays', async () => {
    const { incoming, located } = await storeOne()
    await db.blobs.finish(incoming)
    const refused = db.transaction(async (tx) => {
      await removeFile(tx, db.blobs, located)
      throw new Error('not after all')
    })
    await expect(refused).rejects.toThrow('not after all')
    await db.blobs.collect()
    expect(await textOf(db, located)).toBe('content')
  })

  test('content that is open is read to its end, also if it is removed meanwhile', async () => {
    const { incoming, located } = await storeOne()
    await db.blobs.finish(incoming)
    const opened = await db.blobs.open(located)
    await db.transaction((tx) => removeFile(tx, db.blobs, located))
    await db.blobs.collect()
    expect(contentsIn(folder)).toEqual([])
    expect(await read(opened)).toBe('content')
  })

  test('content that has another length than its row says is not given out', async () => {
    const { incoming, located } = await storeOne()
    await db.blobs.finish(incoming)
    writeFileSync(path.join(folder, placeOf(located.key)), 'cut')
    await expect(db.blobs.open(located)).rejects.toMatchObject({
      kind: 'busy',
      cause: { message: expect.stringMatching(/has 3 bytes and had 7/) },
    })
  })

  describe('a process that is taken for dead while it lives', () => {
    /** Its folder is no longer known to be in use; it goes on all the same. */
    const supposedDead = async () => {
      const other = await openDatabase(place.url, OPTIONS)
      const incoming = await receive(other)
      await other.blobs.close()
      return { other, incoming }
    }

    test('stores no row for content that was removed: the upload is refused', async () => {
      const { other, incoming } = await supposedDead()
      await db.blobs.recover()
      const late = other.transaction(async (tx) => {
        const facts = { name: 'a', type: 'b', size: incoming.size, sha256: incoming.sha256 }
        const id = await insertFile(tx, facts, incoming.key, 0)
        await other.blobs.store(tx, id, incoming)
      })
      expect((await refusalOf(late)).kind).toBe('busy')
      expect(await db.reader.all('select id from verso_file')).toEqual([])
      await other.close()
    })

    test('loses nothing that has a row', async () => {
      const other = await openDatabase(place.url, OPTIONS)
      const { incoming, located } = await storeOne(other)
      await other.blobs.close()
      await db.blobs.recover()
      await other.blobs.finish(incoming)
      expect(contentsIn(folder)).toEqual([placeOf(located.key)])
      await other.close()
    })
  })
})

describe.for(ENGINES)('%s', (engine) => {
  /** What is left of an upload that was never settled, when everything else is done. */
  const leftBy = async (change: (db: Database) => Database) => {
    const place = await newPlace(engine)
    const db = change(await openDatabase(place.url, OPTIONS))
    await db.transaction((tx) => createInternalTables(tx, db.dialect))
    await db.blobs.receive(Readable.from([Buffer.from('content')]), 1_000)
    await db.blobs.recover(0)
    const left = db.blobs.countPending()
    await db.close()
    place.remove()
    return left
  }

  test('an upload that was forgotten holds nothing for ever', async () => {
    expect(await leftBy((db) => db)).toBe(0)
  })

  test('a store that does not look for forgotten uploads is caught', async () => {
    expect(await leftBy(withoutRecovery)).toBe(1)
  })

  test('an upload that was forgotten is refused when it goes on', async () => {
    const place = await newPlace(engine)
    const db = await openDatabase(place.url, OPTIONS)
    await db.transaction((tx) => createInternalTables(tx, db.dialect))
    const incoming = await db.blobs.receive(Readable.from([Buffer.from('content')]), 1_000)
    await db.blobs.recover(0)
    const late = db.transaction((tx) => db.blobs.store(tx, 1, incoming))
    expect((await refusalOf(late)).kind).toBe('busy')
    await db.blobs.finish(incoming)
    await db.close()
    place.remove()
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
