// On SQLite a search that is certain to be short runs in the service, and every other search in the query pool, so that the event loop is free.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Values } from '../../src/model/values/value.js'
import type { App } from '../../src/service/context/app.js'
import { recordsFor } from '../../src/service/records/records.js'
import type { Database } from '../../src/store/engine/database.js'
import { MAX_MEASURED_ROWS } from '../../src/store/find/table-sizes.js'
import { appendChanges } from '../../src/store/log/log.js'
import { openDatabase } from '../../src/store/open.js'
import { insertRows } from '../../src/store/records/write.js'
import type { Records } from '../../src/wire.js'
import { faceOf } from '../mutants/records.js'
import { measuringOnce, withoutBytes, withoutRelatedTables } from '../mutants/searches.js'
import { grantee } from '../permissions/office-fixture.js'
import { searchingBy } from '../query-pool.js'
import { unshared } from '../queryables.js'
import { identityIn, newLocation, startService, type DatabaseLocation, type Service } from '../targets.js'

const COLOR = 'short.Color'
const PART = 'short.Part'
const definitions = [
  defineModel({
    name: COLOR,
    fields: {
      name: { type: 'string' },
      note: { type: 'text' },
      parts: { type: 'one-to-many', target: PART, mappedBy: 'color' },
    },
  }),
  defineModel({
    name: PART,
    fields: { name: { type: 'string' }, color: { type: 'many-to-one', target: COLOR } },
  }),
]
const models = definitions.map((definition) => ({ file: 'short.ts', definition }))
const OPTIONS = { poolSize: 2, statementTimeoutMs: 10_000 }

let location: DatabaseLocation
let service: Service
let statements = 0

/** Counts the statements of the query pool. */
function observe(db: Database): Database {
  const queryPool = searchingBy(db.queryPool, (each) =>
    unshared({
      all: (sql, params) => {
        statements++
        return each.all(sql, params)
      },
    }),
  )
  return { ...faceOf(db), queryPool }
}

async function usesPool(search: () => Promise<unknown>): Promise<boolean> {
  const before = statements
  await search()
  return statements > before
}

/** Stores records with their Changes. */
async function store({ db, tables, catalog }: App, name: string, rows: readonly Values[]): Promise<void> {
  const table = tables.of(catalog.get(name))
  await db.transaction(async (tx) => {
    const ids = await insertRows(tx, table, rows)
    const changes = ids.map((id) => ({
      ...{ model: name, id, version: 0, action: 'create' as const, userId: null, atMs: 0 },
      changes: {},
    }))
    await appendChanges(tx, tables, changes)
  })
}

function fill(app: App, name: string, count: number): Promise<void> {
  return store(
    app,
    name,
    Array.from({ length: count }, (_, index) => ({ name: `n${(index * 7919) % count}` })),
  )
}

async function empty({ db, tables, catalog }: App, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const table = tables.of(catalog.get(name))
    await db.transaction(async (tx) => {
      const rows = await tx.all(`select "id" from ${table.name}`)
      await tx.run(`delete from ${table.name}`)
      const changes = rows.map(({ id }) => ({
        ...{ model: name, id: Number(id), version: 1, action: 'delete' as const, userId: null, atMs: 0 },
        changes: {},
      }))
      await appendChanges(tx, tables, changes)
    })
  }
  service.clock.letASecondPass()
}

const enterAs = async (app: App): Promise<Records> => recordsFor(app, await identityIn(service))

beforeAll(async () => {
  location = await newLocation('sqlite')
  const database = observe(await openDatabase(location.url, OPTIONS))
  service = await startService('sqlite', { models, location, database, isNew: true })
})
afterAll(async () => {
  await service.close()
  location.remove()
})

const searches: readonly (readonly [string, (records: Records) => Promise<unknown>])[] = [
  ['sorted list', (records) => records.find(COLOR, { sortBy: '-name' })],
  ['filtered list', (records) => records.find(COLOR, { filter: `name like '%1%'` })],
  ['list with search words', (records) => records.find(COLOR, { q: 'n1' })],
  ['search', (records) => records.search(COLOR, { sortBy: ['name'] })],
  ['search over a list', (records) => records.find(COLOR, { filter: `parts.name = 'x'` })],
]

test.for(searches)(
  'a %s of a small table runs in the service, one of a large table does not',
  async ([, search]) => {
    await empty(service.app, COLOR, PART)
    await fill(service.app, COLOR, 13)
    const records = await enterAs(service.app)
    expect(await usesPool(() => search(records))).toBe(false)
    await fill(service.app, COLOR, MAX_MEASURED_ROWS)
    expect(await usesPool(() => search(records))).toBe(true)
    // Also without another measurement.
    expect(await usesPool(() => search(records))).toBe(true)
  },
)

/** The name of each step of growth after which a sorted list runs in another place than expected. */
async function checkGrowth(change: (app: App) => App): Promise<string[]> {
  const app = change(service.app)
  const other = await openDatabase(location.url, OPTIONS)
  const records = await enterAs(app)
  const wrong: string[] = []
  const check = async (step: string, isLarge: boolean) => {
    if ((await usesPool(() => records.find(COLOR, { sortBy: 'name' }))) !== isLarge) wrong.push(step)
  }
  try {
    for (const [step, writer] of [
      ['by this process', app],
      ['by another process', { ...app, db: other }],
    ] as const) {
      await empty(service.app, COLOR, PART)
      await fill(service.app, COLOR, MAX_MEASURED_ROWS)
      await check(`full ${step}`, false)
      await fill(writer, COLOR, 1)
      await check(`grown ${step}`, true)
    }
    return wrong
  } finally {
    await other.close()
  }
}

describe('a table that grows past the bound', () => {
  test('is searched in the query pool, whichever process has added records', async () => {
    expect(await checkGrowth((app) => app)).toEqual([])
  })

  test('a mutant that measures each table once is caught', async () => {
    expect(await checkGrowth(measuringOnce)).toContain('grown by another process')
  })
})

describe('few records with long texts', () => {
  const search = async (change: (app: App) => App) => {
    await empty(service.app, COLOR, PART)
    await store(
      service.app,
      COLOR,
      Array.from({ length: 5 }, () => ({ name: 'long', note: 'é'.repeat(200_000) })),
    )
    const records = await enterAs(change(service.app))
    return usesPool(() => records.find(COLOR, { filter: `note like '%x%'` }))
  }

  test('are searched in the query pool', async () => {
    expect(await search((app) => app)).toBe(true)
  })

  test('a mutant that counts rows only is caught', async () => {
    expect(await search(withoutBytes)).toBe(false)
  })
})

describe('a small table with a relation to a large one', () => {
  const search = async (change: (app: App) => App, query: object) => {
    await empty(service.app, COLOR, PART)
    await fill(service.app, COLOR, 13)
    await fill(service.app, PART, MAX_MEASURED_ROWS + 1)
    const records = await enterAs(change(service.app))
    return usesPool(() => records.find(COLOR, query))
  }
  const overParts = { filter: `parts.name = 'n1'` }

  test('is searched in the query pool if a condition follows the relation', async () => {
    expect(await search((app) => app, overParts)).toBe(true)
    expect(await search((app) => app, { sortBy: 'name' })).toBe(false)
  })

  test('a mutant that measures only the searched table is caught', async () => {
    expect(await search(withoutRelatedTables, overParts)).toBe(false)
  })

  test('is searched in the query pool if a permission condition follows the relation', async () => {
    await search((app) => app, {})
    const [own, related] = await Promise.all(
      [`name != 'x'`, `parts.name != 'x'`].map((condition) =>
        grantee(service, [{ model: COLOR, canRead: true, condition }]),
      ),
    )
    expect(await usesPool(async () => own?.client.find(COLOR, { sortBy: 'name' }))).toBe(false)
    expect(await usesPool(async () => related?.client.find(COLOR, { sortBy: 'name' }))).toBe(true)
  })
})

test('a long pattern in a long text is searched in the query pool, where `like` may take its time', async () => {
  const records = await enterAs(service.app)
  await empty(service.app, COLOR, PART)
  await store(service.app, COLOR, [{ name: 'n', note: 'a'.repeat(20_000) }])
  const search = (pattern: string) => () => records.find(COLOR, { filter: `note like '${pattern}'` })
  expect(await usesPool(search('%b%'))).toBe(false)
  expect(await usesPool(search(`%${'a_'.repeat(120)}b%`))).toBe(true)
})

test('the longest searches that run in the service take few times as long as a plain page', async () => {
  const records = await enterAs(service.app)
  const timeOf = async (search: () => Promise<unknown>) => {
    const times: number[] = []
    for (let run = 0; run < 15; run++) {
      const start = performance.now()
      await search()
      times.push(performance.now() - start)
    }
    // The shortest run: other work on the machine only makes runs longer.
    return Math.min(...times)
  }
  const accents = 'é'.repeat(100)
  const filter = Array.from({ length: 4 }, (_, index) => `note like '%${index}x%'`).join(' or ')
  const slow: readonly (readonly [number, object])[] = [
    [MAX_MEASURED_ROWS, { sortBy: 'note,-name' }],
    [14, { filter, sortBy: 'note' }],
    [60, { filter: `note like '%x%'` }],
  ]
  for (const [count, query] of slow) {
    await empty(service.app, COLOR, PART)
    await store(
      service.app,
      COLOR,
      Array.from({ length: count }, (_, index) => ({ name: `n${index}`, note: `${index}${accents}` })),
    )
    expect(await usesPool(() => records.find(COLOR, query))).toBe(false)
    const plain = await timeOf(() => records.find(COLOR, { limit: 40 }))
    expect((await timeOf(() => records.find(COLOR, query))) / plain).toBeLessThan(60)
  }
})
