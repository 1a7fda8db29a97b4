// A record whose lists exceed the answer limit: a write reads the ids of the members, never their names, and every answer is bounded.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { App } from '../../src/service/context/app.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import type { Principal } from '../../src/service/context/principal.js'
import { HeldRecordLimit } from '../../src/service/write/change-limits.js'
import { exportSearch } from '../../src/service/transfer/export.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records } from '../../src/wire.js'
import { unweighed, unweighedWrites, withMemberNames } from '../mutants/answers.js'
import { CountingDatabase } from '../counting-database.js'
import {
  identityIn,
  enter,
  newLocation,
  onEveryEngine,
  catchError,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import {
  asEditor,
  LIMIT,
  makeOwner,
  models,
  MOST_READ,
  NAME,
  READS,
  WRITES,
  type Call,
  type Owner,
} from './large-lists.js'
import { createContext } from '../../src/service/context/context.js'

onEveryEngine((engine) => {
  let location: DatabaseLocation
  let db: CountingDatabase
  let service: Service
  let records: Records
  let admin: Principal
  let editor: Principal

  beforeAll(async () => {
    location = await newLocation(engine)
    db = new CountingDatabase(await openDatabase(location.url, { poolSize: 4, statementTimeoutMs: 10_000 }))
    service = await startService(engine, {
      ...{ models, location, database: db, isNew: true, expects: [] },
      settings: { responseLimitBytes: LIMIT },
    })
    admin = await service.app.authorizer.resolvePrincipal(await identityIn(service))
    records = recordsForPrincipal(service.app, admin)
    editor = asEditor(service.app, admin)
  })
  afterAll(async () => {
    await service.close()
    location.remove()
  })

  test('an export of a record over the answer limit is rejected before it reads the names of members', async () => {
    const { id } = await makeOwner(records)
    const request = { fields: ['pages'], data: { _domain: `self.id = ${id}` } }
    const model = service.app.catalog.get('big.Doc')
    const read = await db.charactersOf(async () => {
      const error = await catchError(
        exportSearch(createContext(service.app, admin), model, request).pages.next(),
      )
      expect([error.kind, error.message]).toEqual(['too-large', expect.stringContaining(`big.Doc ${id}`)])
    })
    expect(read).toBeLessThan(MOST_READ)
  })

  const charactersOf = (owner: Owner, by: Records, call: Call[1]) => db.charactersOf(() => call(owner, by))

  test.for(WRITES)(
    '%s by an administrator reads no names of members and answers within the limit',
    async ([, write]) => {
      expect(await charactersOf(await makeOwner(records), records, write)).toBeLessThan(MOST_READ)
    },
  )

  test.for(WRITES)(
    '%s by a user with conditional permissions reads no names of members and answers within the limit',
    async ([, write]) => {
      const by = recordsForPrincipal(service.app, editor)
      expect(await charactersOf(await makeOwner(records), by, write)).toBeLessThan(MOST_READ)
    },
  )

  test.for(READS)(
    '%s over the answer limit is rejected before it reads the names of members',
    async ([, read]) => {
      for (const principal of [admin, editor]) {
        const reject = async (owner: Owner, by: Records) => {
          const error = await catchError(read(owner, by))
          expect([error.kind, error.message]).toEqual(['too-large', expect.stringContaining('64 KB')])
        }
        const by = recordsForPrincipal(service.app, principal)
        expect(await charactersOf(await makeOwner(records), by, reject)).toBeLessThan(MOST_READ)
      }
    },
  )

  test('mutants that read names, or more than the answer limit, are caught', async () => {
    const caught = async (app: App, by: Principal, [, call]: Call) =>
      (await charactersOf(await makeOwner(records), recordsForPrincipal(app, by), call)) >= MOST_READ
    const [update, list, shown] = WRITES
    if (!update || !list || !shown) throw new Error('there are fewer writes')
    const named = withMemberNames(service.app)
    for (const write of [update, list]) expect(await caught(named, admin, write)).toBe(true)
    const lightWrites = { ...service.app, db: unweighedWrites(db) }
    for (const write of [update, list, shown]) expect(await caught(lightWrites, admin, write)).toBe(true)
    const lightReads = { ...service.app, db: unweighed(db) }
    for (const [name, read] of READS) {
      const call = async (owner: Owner, by: Records) => read(owner, by).catch(() => undefined)
      expect(await caught(lightReads, admin, [name, call]), name).toBe(true)
    }
  })

  /** Sets a text of 1 MB directly in the database. */
  async function enlarge(table: string, field: string, where: string): Promise<void> {
    const text = engine === 'sqlite' ? 'hex(zeroblob(500000))' : `repeat('x', 1000000)`
    const sql = `update "${table}" set "${field}" = ${text} where ${where}`
    await service.app.db.transaction((tx) => tx.run(sql))
  }

  test('a transaction that would hold too many bytes is rejected before it reads all of them', async () => {
    const { id, tags } = await makeOwner(records, 40)
    await enlarge('big.Tag', 'label', `"id" = ${tags[0]}`)
    const sent = { data: { _domain: `self.doc.id = ${id}` }, values: { done: true } }
    const page = { doc: { id }, tag: { id: tags[0] } }
    await records.save(
      'big.Page',
      Array.from({ length: 20 }, () => page),
    )
    const calls = [
      // Each page has the name of its tag, before and after.
      () => records.updateMass('big.Page', sent),
      () => records.remove('big.Doc', id),
    ]
    for (const call of calls) {
      const read = await db.charactersOf(async () => {
        const error = await catchError(call())
        expect([error.kind, error.message]).toEqual(['bad-request', expect.stringContaining('too large')])
      })
      // The maximum held, plus the largest record.
      expect(read).toBeLessThan(36_000_000)
      await enlarge('big.Page', 'text', `"doc" = ${id}`)
    }
  })

  describe('an owner with small lists', () => {
    test('an update or a conflict of an owner with small lists has the names of its members', async () => {
      const { id, pages, tags } = await makeOwner(records, 2)
      for (const by of [admin, editor].map((principal) => recordsForPrincipal(service.app, principal))) {
        const { version } = await records.read('big.Doc', id)
        const { data } = await by.update('big.Doc', id, { version, title: `at ${version}` })
        expect(data).toEqual(await by.read('big.Doc', id))
        expect(data).toMatchObject({
          pages: pages.map((page) => ({ id: page, $version: 0, text: NAME })),
          tags: tags.map((tag) => ({ id: tag, $version: 0, label: NAME })),
        })
        const error = await catchError(by.update('big.Doc', id, { version, title: 'mine' }))
        expect(error.details.data?.['theirs']).toEqual(data)
        const sent = { version: version + 1, tags: tags.map((tag) => ({ id: tag })) }
        expect((await by.update('big.Doc', id, sent)).data).toEqual(await by.read('big.Doc', id))
      }
    })

    test('an owner with small lists can be sent back as read, and a changed name of a member is rejected', async () => {
      const { id } = await makeOwner(records, 2)
      for (const by of [admin, editor].map((principal) => recordsForPrincipal(service.app, principal))) {
        const read = await by.read('big.Doc', id)
        const { data } = await by.update('big.Doc', id, read)
        expect(data.version).toBe(read.version + 1)
        const pages = (data['pages'] as readonly object[]).map((page) => ({ ...page, text: 'changed' }))
        const error = await catchError(by.update('big.Doc', id, { ...data, pages }))
        expect(error.details.errors).toHaveProperty('pages[0].text')
      }
    })
  })

  test('names sent back with a list over the answer limit are rejected without reading the stored ones', async () => {
    const owner = await makeOwner(records)
    const { id, version } = owner
    for (const by of [admin, editor].map((principal) => recordsForPrincipal(service.app, principal))) {
      const pages = owner.pages.map((page) => ({ id: page, $version: 0, text: 'x' }))
      const read = await charactersOf(owner, by, async () => {
        const error = await catchError(by.update('big.Doc', id, { version, pages }))
        expect([error.kind, error.message]).toEqual(['too-large', expect.stringContaining('"pages"')])
      })
      expect(read).toBeLessThan(MOST_READ)
    }
    const bare = owner.pages.map((page) => ({ id: page, $version: 0 }))
    const { data } = await records.update('big.Doc', id, { version, pages: bare })
    expect(data).toEqual({ id, version: version + 1 })
  })

  test('over HTTP, copies, reads at a version and conflicts over the answer limit fail with 4xx errors', async () => {
    const { id, version } = await makeOwner(records)
    const by = await enter(service, 'http')
    expect((await catchError(by.copy('big.Doc', id))).kind).toBe('too-large')
    expect((await catchError(by.readAt('big.Doc', id, version))).kind).toBe('too-large')
    expect(
      (await catchError(by.update('big.Doc', id, { version: 7, title: 'x' }))).details.data,
    ).toMatchObject({
      ...{ isShortened: true, theirs: { id, version } },
    })
  })

  test('a write of a model without lists reads the record as a read does, in one statement', () => {
    const table = service.app.tables.of(service.app.catalog.get('big.Tag'))
    expect(table.own).toBe(table.full)
  })

  test('one record of any size can be changed, and further records up to a total size', () => {
    const model = service.app.catalog.get('big.Page')
    const held = new HeldRecordLimit()
    const hold = (id: number, length: number) => () => {
      held.add(model, { id, version: 0, text: 'x'.repeat(length) })
    }
    // A change counts its record twice: before and after.
    for (const add of [hold(1, 40_000_000), hold(1, 40_000_000), hold(2, 31_000_000)]) add()
    expect(hold(3, 1_000_000)).toThrow('change fewer of them')
  })
})
