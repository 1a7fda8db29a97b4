// A disk that fills up under load: a small tmpfs where mounting is possible; otherwise, and on SQLite in addition, a limit of the engine.
import { statSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { startPostgres } from '../postgres.js'
import {
  newLocation,
  PASSWORD,
  startService,
  USERNAME,
  type Engine,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { answersBeforeCommit } from '../mutants/records.js'
import { importMutantStore } from '../mutants/watchdog.js'
import { exchange, type Session } from './load-client.js'
import { Journal } from './journal.js'
import { mountSmallDisk, removeSmallDisks, type SmallDisk } from './small-disk.js'

const AT_ONCE = 32
const PAGES = 'a limit of pages'
const TABLESPACE = 'a tablespace on a tmpfs of 20 MB'
const SMALL_TEXT = 10
/** The disk is full after this many groups in which not even a small text was written. */
const FULL_GROUPS = 3
const MAX_GROUPS = 200

afterAll(removeSmallDisks)

interface Disk {
  readonly location: DatabaseLocation
  /** Steps that need the tables. */
  prepare?(db: Database): Promise<void>
  grow(db: Database): Promise<void>
  remove(): Promise<void>
}

describeFullDisk('sqlite', PAGES, 8_000, async () => {
  const location = await newLocation('sqlite')
  const allow = async (db: Database, pages: number) => {
    await db.transaction((tx) => tx.all(`pragma max_page_count = ${pages}`))
  }
  return {
    location,
    prepare: (db) => allow(db, 600),
    grow: (db) => allow(db, 6_000),
    remove: async () => location.remove(),
  }
})

if (canMount()) {
  describeFullDisk('sqlite', 'a tmpfs of 3 MB', 8_000, async () => {
    const disk = mount(3)
    return { location: locationOn(disk), grow: async () => disk.grow(16), remove: async () => disk.remove() }
  })

  test('sqlite on a full tmpfs of 3 MB stops and starts again without a loss', async () => {
    const location = locationOn(mount(3))
    const journal = new Journal()
    const service = await startService('sqlite', { location, expects: ['storage-full'] })
    const { cookie, url } = await HttpClient.login(service.url, USERNAME, PASSWORD)
    await fillUp(journal, { url, cookie }, 8_000)
    await service.close()
    const again = await startService('sqlite', { location })
    const { status } = await exchange({ url: again.url, cookie }, 'GET', '/ws/rest/crm.Contact')
    expect(status).toBe(200)
    expect(await journal.check(again.app.db.reader)).toEqual([])
    await again.close()
  })

  test('sqlite on a full tmpfs of 3 MB: the mutant that answers before it commits is caught', async () => {
    const location = locationOn(mount(3))
    const sound = await startService('sqlite', { location })
    const { cookie } = await HttpClient.login(sound.url, USERNAME, PASSWORD)
    await sound.close()
    const db = await openDatabase(location.url, { poolSize: 1, statementTimeoutMs: 1_000 })
    const service = await startService('sqlite', { location, database: answersBeforeCommit(db, 0) })
    const journal = new Journal()
    for (let i = 0; i < 15; i++) await writeGroup(journal, { url: service.url, cookie }, 8_000)
    const violations = await journal.check(db.reader)
    expect(violations).toContainEqual(expect.stringMatching(/was acknowledged as .* and is gone/))
    await service.close()
  })

  describeFullDisk('postgres', TABLESPACE, 40_000, async () => fullTablespace())

  test.each([
    ['a full disk is not noticed', undefined],
    ['the room of a full disk is not tested', 'full'],
  ] as const)('postgres on a full disk: the mutant in which %s is caught', async (mistake, kind) => {
    const disk = await fullTablespace()
    const { openDatabase: openMutant } = await importMutantStore(inject('runFolder'), mistake)
    const [sound, mutant] = await Promise.all(
      [openDatabase, openMutant].map((open) =>
        open(disk.location.url, { poolSize: 3, statementTimeoutMs: 20_000 }),
      ),
    )
    const tooMuch = `create table much as select repeat('x', 1000) from generate_series(1, 100000)`
    for (const db of [sound, mutant]) {
      await expect(db?.transaction((tx) => tx.run(tooMuch))).rejects.toThrow(/disk is full/)
      expect((await db?.writability())?.kind).toBe(db === sound ? 'full' : kind)
    }
    await disk.grow()
    await vi.waitFor(async () => {
      expect((await mutant?.writability())?.kind).toBe(kind)
      expect(await sound?.writability()).toBeUndefined()
    }, 20_000)
    for (const db of [sound, mutant]) await db?.close()
    await disk.remove()
  })
} else {
  console.warn(
    'Nothing can be mounted here: PostgreSQL says "disk full" by a trigger, SQLite by its limit of pages only',
  )

  describeFullDisk('postgres', 'a trigger that says so', 40_000, async () => {
    const location = await newLocation('postgres')
    return {
      location,
      prepare: async (db) => {
        await db.transaction(async (tx) => {
          await tx.run(`create function refuse() returns trigger language plpgsql as $$ begin
            if pg_total_relation_size('"crm.Contact"') > 4000000 then
              raise exception 'could not extend file' using errcode = '53100';
            end if; return new; end $$`)
          await tx.run(
            'create trigger no_room before insert or update on "crm.Contact" for each row execute function refuse()',
          )
        })
      },
      grow: async (db) => {
        await db.transaction((tx) => tx.run('drop trigger no_room on "crm.Contact"'))
      },
      remove: async () => location.remove(),
    }
  })
}

function describeFullDisk(engine: Engine, what: string, bigText: number, open: () => Promise<Disk>): void {
  describe(`${engine}, full by ${what}`, () => {
    let disk: Disk
    let service: Service
    let client: HttpClient
    const journal = new Journal()
    const hasReadiness = what === TABLESPACE
    const cleanups: (() => Promise<void>)[] = []

    beforeAll(async () => {
      disk = await open()
      cleanups.push(() => disk.remove())
      service = await startService(engine, { location: disk.location, expects: ['storage-full'] })
      cleanups.push(() => service.close())
      client = await HttpClient.login(service.url, USERNAME, PASSWORD)
      await disk.prepare?.(service.app.db)
    })
    afterAll(async () => {
      for (const cleanUp of cleanups.reverse()) await cleanUp()
    })

    test('writes succeed until the disk is full, then every write is rejected with 507', async () => {
      const groups = await fillUp(journal, client, bigText)
      expect(Object.keys(journal.answers)).toEqual(['200', '507'])
      // Within a group, small texts can still succeed. On a real disk the last free pages decide; under a limit of pages there always is a
      // mixed group.
      const isMixed = groups.some(({ done, rejected }) => done > 0 && rejected > 0)
      if (what === PAGES) expect(isMixed).toBe(true)
      expect(groups.at(-1)).toEqual({ done: 0, rejected: AT_ONCE })
    })

    test('a full disk loses no acknowledged write and stores no rejected one', async () => {
      expect(await journal.check(service.app.db.reader)).toEqual([])
      expect(journal.acknowledged).toBeGreaterThan(AT_ONCE)
    })

    test('reads succeed while the disk is full', async () => {
      for (const path of ['?limit=5', `/${journal.ids[0] ?? 0}`]) {
        const { status } = await exchange(client, 'GET', `/ws/rest/crm.Contact${path}`)
        expect(status, path).toBe(200)
      }
    })

    test('writes succeed again once the disk has room, without a restart', async () => {
      if (hasReadiness) expect(await readiness(service)).toEqual(FULL)
      await disk.grow(service.app.db)
      // Before any write: a proxy may send none to a node that is not writable.
      if (hasReadiness)
        await vi.waitFor(async () => expect(await readiness(service)).toEqual({ writable: true }), 20_000)
      expect(await writeGroup(journal, client, bigText)).toEqual({ done: AT_ONCE, rejected: 0 })
      expect(await journal.check(service.app.db.reader)).toEqual([])
      if (engine === 'sqlite') {
        expect(await service.app.db.reader.all('pragma integrity_check')).toEqual([{ integrity_check: 'ok' }])
      }
    })
  })
}

const FULL = { writable: false, problem: 'full', reason: 'The disk is full; nothing was changed' }

async function readiness({ url }: Pick<Service, 'url'>): Promise<unknown> {
  const { body } = await exchange({ url, cookie: '' }, 'GET', '/readyz')
  return (body.data as unknown[])[0]
}

interface Group {
  readonly done: number
  readonly rejected: number
}

async function fillUp(journal: Journal, session: Session, bigText: number): Promise<Group[]> {
  const groups: Group[] = []
  const isFull = () =>
    groups.length >= FULL_GROUPS && groups.slice(-FULL_GROUPS).every(({ done }) => done === 0)
  while (!isFull() && groups.length < MAX_GROUPS) groups.push(await writeGroup(journal, session, bigText))
  return groups
}

/** Writes big and small texts in turn, a quarter of them into existing records. */
async function writeGroup(journal: Journal, session: Session, bigText: number): Promise<Group> {
  const known = journal.ids.slice(-AT_ONCE / 4)
  const writes = Array.from({ length: AT_ONCE }, async (_, index) => {
    const size = index % 2 === 0 ? bigText : SMALL_TEXT
    const id = known[index / 4]
    if (id !== undefined) return (await journal.update(session, id, size)) === 'done'
    return (await journal.create(session, size)) !== undefined
  })
  const done = (await Promise.all(writes)).filter(Boolean).length
  return { done, rejected: AT_ONCE - done }
}

async function fullTablespace() {
  const server = await startPostgres({ durable: true })
  // PostgreSQL must own the folder.
  const disk = mount(20, statSync(`/proc/${server.pid ?? 'self'}`))
  const client = new pg.Client(server.url)
  await client.connect()
  await client.query(`create tablespace small location '${disk.folder}'`)
  await client.query('create database verso tablespace small')
  await client.end()
  return {
    location: { url: server.url.replace(/postgres$/, 'verso'), remove: () => undefined },
    grow: async (): Promise<void> => disk.grow(64),
    remove: async () => {
      await server.stop()
      disk.remove()
    },
  }
}

function locationOn(disk: SmallDisk): DatabaseLocation {
  return { url: `sqlite:${disk.folder}/verso.db`, remove: () => undefined }
}

function canMount(): boolean {
  const disk = mountSmallDisk(1)
  disk?.remove()
  return disk !== undefined
}

function mount(sizeMb: number, owner?: { uid: number; gid: number }): SmallDisk {
  const disk = mountSmallDisk(sizeMb, owner)
  if (!disk) throw new Error('a moment ago a disk could be mounted')
  return disk
}
