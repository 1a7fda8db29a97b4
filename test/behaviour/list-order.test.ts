// `orderBy` of a list: answers show the list in this order, and the order is no part of the record.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { describeModel } from '../../src/formats/model-description.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { recordsFor, recordsForPrincipal } from '../../src/service/records/records.js'
import { exportSearch } from '../../src/service/transfer/export.js'
import type { Database, Queryable, Reader } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { changesSince } from '../log.js'
import { grantee, rootOf, type UserWithPermissions } from '../permissions/office-fixture.js'
import { READ_MUTANTS } from '../mutants/permissions.js'
import {
  enter,
  onEveryEngine,
  onEveryTarget,
  preparedLocation,
  catchError,
  startService,
} from '../targets.js'
import { searchingBy } from '../query-pool.js'
import { faceOf } from '../mutants/records.js'
import { createContext } from '../../src/service/context/context.js'
import { unshared, unsharedTransaction } from '../queryables.js'

const ORDER = 'sort.Order'
const LINE = 'sort.Line'
const PRODUCT = 'sort.Product'
const TAG = 'sort.Tag'

const models = [
  defineModel({
    name: ORDER,
    fields: {
      name: { type: 'string' },
      rank: { type: 'integer' },
      lines: {
        ...{ type: 'one-to-many', target: LINE, mappedBy: 'order', owned: true },
        orderBy: ['sequence', '-price'],
      },
      tags: { type: 'many-to-many', target: TAG, orderBy: ['-name'] },
    },
  }),
  defineModel({
    name: LINE,
    fields: {
      name: { type: 'string' },
      sequence: { type: 'integer' },
      price: { type: 'decimal', precision: 10, scale: 2 },
      order: { type: 'many-to-one', target: ORDER },
      product: { type: 'many-to-one', target: PRODUCT },
      notes: { type: 'many-to-many', target: TAG, orderBy: ['name'] },
    },
  }),
  defineModel({
    name: PRODUCT,
    fields: {
      name: { type: 'string' },
      // Sorts by the rank of the owner, then by the name of the owner.
      lines: {
        ...{ type: 'one-to-many', target: LINE, mappedBy: 'product' },
        orderBy: ['-order.rank', 'order', '-id'],
      },
    },
  }),
  defineModel({
    name: TAG,
    fields: {
      name: { type: 'string' },
      orders: { type: 'many-to-many', target: ORDER, mappedBy: 'tags', orderBy: ['-rank'] },
    },
  }),
].map((definition) => ({ file: 'list-order.test.ts', definition }))

const namesIn = (record: unknown, list: string) =>
  ((record as WireRecord)[list] as readonly { readonly name: string }[]).map(({ name }) => name)
const linesOf = (record: unknown) => namesIn(record, 'lines')

/** In the order of creation; `SHOWN` has the expected order. */
const LINES = [
  { name: 'none', price: '9' },
  { name: 'third', sequence: 3 },
  { name: 'cheap', sequence: 1, price: '9.50' },
  { name: 'dear', sequence: 1, price: '10.00' },
  { name: 'free', sequence: 1 },
  { name: 'second', sequence: 2 },
  { name: 'none either', price: '9' },
]
const SHOWN = ['dear', 'cheap', 'free', 'second', 'third', 'none', 'none either']
const TAGS = ['B', 'a', 'é', '\u{1F600}', '\uFFFD']
/** By code point, descending. */
const TAGS_SHOWN = ['\u{1F600}', '\uFFFD', 'é', 'a', 'B']

const manyTags = (ids: readonly number[]) => ids.map((id) => ({ id }))

onEveryTarget((engine, transport) => {
  let service: Awaited<ReturnType<typeof startService>>
  let records: Records
  let tags: number[]
  beforeAll(async () => {
    service = await startService(engine, { models })
    records = await enter(service, transport)
    tags = []
    for (const name of TAGS) tags.push((await records.create(TAG, { name })).data.id)
  })
  afterAll(() => service.close())

  const make = async (more: object = {}) =>
    (await records.create(ORDER, { name: 'O', lines: LINES, tags: manyTags(tags), ...more })).data

  test('reads, writes, fetches, finds, copies, conflicts and exports show a list in its order', async () => {
    const created = await make()
    const { id } = created
    const only = { data: { _domain: `self.id = ${id}` } }
    const shown = {
      created,
      read: await records.read(ORDER, id),
      updated: (await records.update(ORDER, id, { version: 0, name: 'P' })).data,
      saved: (await records.save(ORDER, [{ id, version: 1, name: 'Q' }])).data[0],
      sentBack: (await records.update(ORDER, id, await records.read(ORDER, id))).data,
      batched: (await records.batch([{ op: 'update', model: ORDER, id, version: 3, data: { name: 'R' } }]))
        .data[0],
      fetched: await records.fetch(ORDER, id, { fields: ['name', 'lines', 'tags'] }),
      related: await records.fetch(ORDER, id, { related: { lines: ['name', 'sequence'], tags: ['name'] } }),
      found: (await records.find(ORDER, { fields: 'lines,tags', filter: `id = ${id}` })).data[0],
      searched: (await records.search(ORDER, { ...only, fields: ['lines', 'tags'] })).data[0],
      answered: (
        await records.update(ORDER, id, { version: 4 }, { returning: { fields: ['lines', 'tags'] } })
      ).data,
      copied: await records.copy(ORDER, id),
      stale: (await catchError(records.update(ORDER, id, { version: 0, name: 'S' }))).details.data?.[
        'theirs'
      ],
    }
    for (const [where, record] of Object.entries(shown)) {
      expect(linesOf(record), where).toEqual(SHOWN)
      expect(namesIn(record, 'tags'), where).toEqual(TAGS_SHOWN)
    }
    const { columns, pages } = exportSearch(
      createContext(service.app, SERVICE_PRINCIPAL),
      service.app.catalog.get(ORDER),
      {
        ...only,
        fields: ['tags'],
      },
    )
    const exported: string[][] = []
    for await (const page of pages) exported.push(...page.map((row) => namesIn(row, 'tags')))
    expect(columns.map(({ key }) => key)).toContain('tags')
    expect(exported).toEqual([TAGS_SHOWN])
  })

  test('inverse relations, lists in lists and orders over references are sorted', async () => {
    const product = (await records.create(PRODUCT, { name: 'P' })).data.id
    const of = (name: string) => ({ name, product: { id: product }, notes: manyTags(tags) })
    const orders: number[] = []
    for (const [name, rank] of [
      ['b', 1],
      ['z', null],
      ['a', 1],
      ['c', 7],
    ] as const) {
      const lines = [of(`${name}1`), of(`${name}2`)]
      orders.push((await make({ name, rank, lines, tags: manyTags(tags.slice(0, 1)) })).id)
    }
    const shown = await records.fetch(PRODUCT, product, { fields: ['lines', 'lines.notes'] })
    expect(linesOf(shown)).toEqual(['c2', 'c1', 'a2', 'a1', 'b2', 'b1', 'z2', 'z1'])
    for (const line of shown['lines'] as readonly WireRecord[])
      expect(namesIn(line, 'notes')).toEqual(TAGS_SHOWN.toReversed())
    const tag = await records.fetch(TAG, tags[0] ?? 0, { fields: ['orders'] })
    const ranked = (tag['orders'] as readonly WireRecord[]).filter(({ id }) => orders.includes(id))
    expect(namesIn({ ranked }, 'ranked')).toEqual(['c', 'b', 'a', 'z'])
  })

  test('a member that moves in the order changes no owner, and Changes list member ids by id', async () => {
    const order = await make()
    const lines = order['lines'] as readonly WireRecord[]
    const last = lines.at(-1)?.id ?? 0
    const { seq } = await records.find(ORDER, { limit: 0 })
    await records.update(LINE, last, { version: 0, sequence: 0 })
    const moved = await records.read(ORDER, order.id)
    expect(moved.version).toBe(0)
    expect(linesOf(moved)[0]).toBe('none either')
    await records.update(ORDER, order.id, { version: 0, lines: manyTags(lines.map(({ id }) => id)) })
    const added = {
      version: 1,
      lines: [...manyTags(lines.map(({ id }) => id)), { name: 'new', sequence: 1 }],
    }
    const grown = (await records.update(ORDER, order.id, added)).data
    expect(linesOf(grown)).toEqual(['none either', 'dear', 'cheap', 'free', 'new', 'second', 'third', 'none'])
    // A member that is created with a reference to the owner increments the owner's version, too.
    const joined = (await records.create(LINE, { name: 'x', sequence: -1, order: { id: order.id } })).data.id
    const ids = (await records.read(ORDER, order.id))['lines'] as readonly WireRecord[]
    const inOrder = (members: readonly number[]) => manyTags(members.toSorted((a, b) => a - b))
    const all = ids.map(({ id }) => id)
    const newest = Math.max(...all.filter((id) => id !== joined))
    const changes = (await changesSince(service.app.db.reader, seq, 100)).filter(
      ({ model }) => model === ORDER,
    )
    expect(changes.map(({ version, changes }) => [version, changes])).toEqual([
      [1, {}],
      [
        2,
        {
          lines: {
            before: inOrder(all.filter((id) => id < newest)),
            after: inOrder(all.filter((id) => id !== joined)),
          },
        },
      ],
      [3, { lines: { before: inOrder(all.filter((id) => id !== joined)), after: inOrder(all) } }],
    ])
  })

  test("a record or list of the past shows its former members in today's order", async () => {
    const order = await make()
    service.clock.advance(60_000)
    const at = new Date(service.clock.now()).toISOString()
    service.clock.advance(60_000)
    const lines = order['lines'] as readonly WireRecord[]
    await records.update(LINE, lines.at(-1)?.id ?? 0, { version: 0, sequence: 0 })
    const kept = lines.filter(({ name }) => name !== 'second')
    await records.update(ORDER, order.id, { version: 0, lines: manyTags(kept.map(({ id }) => id)) })
    const was = ['none either', 'dear', 'cheap', 'free', 'third', 'none']
    for (const record of [
      await records.readAt(ORDER, order.id, 0),
      await records.readAt(ORDER, order.id, at),
      (await records.find(ORDER, { asOf: at, fields: 'lines,tags', filter: `id = ${order.id}` })).data[0],
    ]) {
      // A deleted member has only its id, and comes last.
      expect(linesOf(record)).toEqual([...was, undefined])
      expect(namesIn(record, 'tags')).toEqual(TAGS_SHOWN)
    }
  })

  test('the description of a model contains the order of its lists', () => {
    const { catalog } = service.app
    const { fields } = describeModel(catalog, catalog.get(ORDER), null)
    expect(fields.flatMap(({ name, orderBy }) => (orderBy ? [[name, orderBy]] : []))).toEqual([
      ['lines', ['sequence', '-price']],
      ['tags', ['-name']],
    ])
  })
})

/** A mutant that sorts lists by id, also those of the past. */
function withoutListOrder(db: Database): Database {
  const ORDERED = /order by (?:(?:case .*? end|\S+) (?:asc|desc) nulls last, )+((?:r\d+|t)\."id")/g
  const byId = (queryable: Queryable): Reader =>
    unshared({
      all: (sql, params) => queryable.all(sql.replaceAll(ORDERED, 'order by $1'), params),
    })
  return {
    ...faceOf(db),
    reader: byId(db.reader),
    queryPool: searchingBy(db.queryPool, byId),
    transaction: (work, options) =>
      db.transaction(
        (tx) =>
          work(
            unsharedTransaction({
              all: (sql, params) => byId(tx).all(sql, params),
              run: (sql, params) => tx.run(sql, params),
              insert: (sql, params) => tx.insert(sql, params),
            }),
          ),
        options,
      ),
  }
}

onEveryEngine((engine) => {
  test('the order of a list reveals no field that the user may not read', async () => {
    const service = await startService(engine, { models })
    const made = (await rootOf(service).create(ORDER, { name: 'O', rank: 1, lines: LINES })).data
    const may = (readable: readonly string[], condition?: string) => ({
      ...{ model: LINE, canRead: true, readable },
      ...(condition === undefined ? {} : { condition }),
    })
    const order = { model: ORDER, canRead: true }
    const blind = await grantee(service, [order, may(['name', 'order', 'price'])])
    const partly = await grantee(service, [
      order,
      may(['name', 'order', 'price']),
      may(['sequence'], 'sequence >= 2'),
    ])
    const identityOf = async ({ id, username }: UserWithPermissions) => {
      const { version } = await rootOf(service).read(USER_MODEL, id)
      return { id, version, username, name: username }
    }
    /** The lines as the service shows them to this user, by each kind of read. */
    const shownTo = async (who: UserWithPermissions, app = service.app) => {
      const records = recordsFor(app, await identityOf(who))
      return {
        read: linesOf(await records.read(ORDER, made.id)),
        fetched: linesOf(await records.fetch(ORDER, made.id, { related: { lines: ['name'] } })),
        found: linesOf((await records.find(ORDER, { fields: 'lines' })).data[0]),
        past: linesOf(await records.readAt(ORDER, made.id, 0)),
      }
    }
    const everywhere = (names: readonly string[]) => ({
      read: names,
      fetched: names,
      found: names,
      past: names,
    })
    // Only the price is readable, the second key: highest first, null last.
    expect(await shownTo(blind)).toEqual(
      everywhere(['dear', 'cheap', 'none', 'none either', 'third', 'free', 'second']),
    )
    // A hidden sequence sorts as null.
    expect(await shownTo(partly)).toEqual(
      everywhere(['second', 'third', 'dear', 'cheap', 'none', 'none either', 'free']),
    )
    const { authorizer, catalog } = service.app
    const { permissions } = await authorizer.resolvePrincipal(await identityOf(blind))
    const { fields } = describeModel(permissions ?? catalog, catalog.get(ORDER), null)
    expect(fields.find(({ name }) => name === 'lines')).toMatchObject({ orderBy: ['-price'] })
    // Mutants that ignore the permissions show the full order.
    const named = READ_MUTANTS['hidden fields can be used in searches']?.(service.app)
    const unmasked = READ_MUTANTS['a field that is visible in one record is visible in all']?.(service.app)
    expect((await shownTo(blind, named)).read).toEqual(SHOWN)
    expect((await shownTo(partly, unmasked)).read).toEqual(SHOWN)
    await service.close()
  })

  describe('mutants of the list order', () => {
    test('a mutant that sorts lists by id is caught', async () => {
      const location = await preparedLocation(engine, models)
      const database = withoutListOrder(
        await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 }),
      )
      const service = await startService(engine, { models, location, database })
      const records = recordsForPrincipal(service.app, SERVICE_PRINCIPAL)
      const made = (await records.create(ORDER, { name: 'O', lines: LINES })).data
      expect(linesOf(made)).toEqual(LINES.map(({ name }) => name))
      expect(linesOf(await records.readAt(ORDER, made.id, 0))).toEqual(LINES.map(({ name }) => name))
      await service.close()
      location.remove()
    })
  })
})
