// More models than one transaction takes: several transactions create their tables, and no node is left half-way.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Catalog, type ModelSource } from '../../src/model/catalog/catalog.js'
import { createApp } from '../../src/service/create-app.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { applySchema, previewSchema } from '../../src/store/schema/apply.js'
import { enter, newLocation, onEveryEngine, startService, type DatabaseLocation } from '../targets.js'
import { blindToOtherNodes } from '../mutants/records.js'
import { faultsOf } from './lead-fixture.js'

const COUNT = 180
const nameOf = (index: number) => `many.M${index}`

function many(more: (index: number) => object = () => ({}), count = COUNT): ModelSource[] {
  return Array.from({ length: count }, (_, index) => {
    const next = { type: 'many-to-one', target: nameOf((index + 1) % count) }
    const all = { type: 'many-to-many', target: nameOf((index * 7) % count) }
    const fields = {
      code: { type: 'string' },
      next,
      ...(index % 5 === 0 ? { all } : {}),
      ...more(index),
    }
    return { file: 'many.json', definition: { name: nameOf(index), fields } }
  })
}

const NODES = 3

/** A barrier: nobody continues before all have arrived. */
function meetingOf(count: number): () => Promise<void> {
  let there = 0
  let open = (): void => undefined
  const all = new Promise<void>((resolve) => {
    open = resolve
  })
  return async () => {
    if (++there === count) open()
    await all
  }
}

/** Makes a node wait for the others after its first transaction, which makes the plan. */
function afterFirst(db: Database, meet: () => Promise<void>): Database {
  let transactions = 0
  return {
    ...{ dialect: db.dialect, reader: db.reader, queryPool: db.queryPool },
    ...{ blobs: db.blobs, commits: db.commits, close: () => db.close() },
    ...{ writability: () => db.writability(), gauges: () => db.gauges(), measure: () => db.measure() },
    transaction: async (work, options) => {
      const result = await db.transaction(work, options)
      if (++transactions === 1) await meet()
      return result
    },
  }
}

onEveryEngine((engine) => {
  let location: DatabaseLocation
  beforeEach(async () => {
    location = await newLocation(engine)
  })
  afterEach(() => {
    location.remove()
  })
  const open = () => openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 })

  async function withDatabase<T>(use: (db: Database) => Promise<T>): Promise<T> {
    const db = await open()
    try {
      return await use(db)
    } finally {
      await db.close()
    }
  }

  const storedModels = () =>
    withDatabase(async (db) => {
      const rows = await db.reader.all('select model from verso_schema')
      return rows.map((row) => String(row['model'])).sort()
    })
  const planFor = (sources: readonly ModelSource[]) =>
    withDatabase(async (db) => {
      const { steps, errors, notes } = await previewSchema(db, Catalog.from(sources), [])
      return { steps, faults: errors, notes }
    })
  const NOTHING = { steps: [], faults: [], notes: [] }

  /** The errors of nodes that start concurrently. */
  async function startTogether(mutant: (db: Database) => Database): Promise<unknown[]> {
    const meet = meetingOf(NODES)
    const starts = Array.from({ length: NODES }, async () => {
      const database = afterFirst(mutant(await open()), meet)
      const app = await createApp({ models: many(), database })
      return () => app.close()
    })
    const outcomes = await Promise.allSettled(starts)
    for (const outcome of outcomes) if (outcome.status === 'fulfilled') await outcome.value()
    return outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
  }

  test('nodes that start concurrently with many models all start', async () => {
    expect(await startTogether((db) => db)).toEqual([])
    expect(await storedModels()).toEqual(
      Catalog.from(many())
        .storedModels.map(({ name }) => name)
        .sort(),
    )
    expect(await planFor(many())).toEqual(NOTHING)
  })

  test('a mutant that ignores the steps of other nodes is caught', async () => {
    expect(await startTogether(blindToOtherNodes)).not.toEqual([])
  })

  test('an interrupted start is continued by the next one', async () => {
    const cutOff = withDatabase(async (db) => {
      let transactions = 0
      const failing: Database = {
        ...{ dialect: db.dialect, reader: db.reader, queryPool: db.queryPool },
        ...{ blobs: db.blobs, commits: db.commits, close: () => db.close() },
        ...{ writability: () => db.writability(), gauges: () => db.gauges(), measure: () => db.measure() },
        transaction: async (work, options) => {
          if (++transactions > 2) throw new Error('cut off')
          return db.transaction(work, options)
        },
      }
      await applySchema(failing, Catalog.from(many()))
    })
    await expect(cutOff).rejects.toThrow('cut off')
    const { length } = await storedModels()
    expect(length).toBeGreaterThan(0)
    expect(length).toBeLessThan(COUNT)
    await withDatabase((db) => applySchema(db, Catalog.from(many())))
    expect(await planFor(many())).toEqual(NOTHING)
  })

  test('an error in one of many models stops the start before any change', async () => {
    const few = many(undefined, 2)
    const service = await startService(engine, { location, models: few })
    const records = await enter(service, 'direct')
    await records.create(nameOf(0), { code: 'same' })
    await records.create(nameOf(0), { code: 'same' })
    await service.close()
    const before = await storedModels()
    const unique = { code: { type: 'string', unique: true } }
    const start = withDatabase((db) =>
      applySchema(db, Catalog.from(many((index) => (index === 0 ? unique : {})))),
    )
    expect(await faultsOf(start)).toMatch(/code cannot be unique/)
    expect(await storedModels()).toEqual(before)
  })

  test('many tables grow in one start, with defaults and computed fields for stored records', async () => {
    const service = await startService(engine, { location, models: many() })
    await (await enter(service, 'direct')).create(nameOf(3), { code: 'x', next: { code: 'y' } })
    await service.close()
    const grown = many((index) => ({
      size: { type: 'integer', default: index },
      ...(index === 3
        ? {
            twice: { type: 'string', computed: '{code}{code}' },
            also: { type: 'many-to-one', target: 'many.New' },
          }
        : {}),
    }))
    const models = [
      ...grown,
      { file: 'many.json', definition: { name: 'many.New', fields: { name: { type: 'string' } } } },
    ]
    const later = await startService(engine, { location, models })
    const records = await enter(later, 'direct')
    expect(await records.read(nameOf(3), 1)).toMatchObject({ version: 0, code: 'x', size: 3, twice: 'xx' })
    expect(await records.read(nameOf(4), 1)).toMatchObject({ code: 'y', size: 4 })
    await later.close()
    expect(await planFor(models)).toEqual(NOTHING)
  })
})
