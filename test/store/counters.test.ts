// Counters of databases that had none, of models that change, and of tables that were written directly.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/index.js'
import { Catalog, type ModelSource } from '../../src/model/catalog/catalog.js'
import type { App } from '../../src/service/context/app.js'
import {
  findCounterDifferences,
  rebuildCounters,
  type CounterMismatch,
} from '../../src/service/maintenance/counters.js'
import type { SqlValue } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { applySchema } from '../../src/store/schema/apply.js'
import { isSchemaCurrent } from '../../src/store/records/write.js'
import { BOX, CounterFixture, ITEM, models, wrongTotals } from '../counter-fixture.js'
import { seeded } from '../properties/history-fixture.js'
import {
  enter,
  newLocation,
  onEngineOfTier,
  startService,
  type Engine,
  type DatabaseLocation,
} from '../targets.js'

type Definition = Partial<Parameters<typeof defineModel>[0]>

interface Changed {
  readonly what: string
  readonly before?: Definition
  readonly after: Definition
}

const PATIENT = { statementTimeoutMs: 60_000 }
const OPTIONS = { poolSize: 3, ...PATIENT }

onEngineOfTier((engine) => {
  let location: DatabaseLocation
  beforeEach(async () => {
    location = await newLocation(engine)
  })
  afterEach(() => location.remove())

  /** Runs statements directly on the database. */
  const change = async (...statements: readonly (readonly [string, ...SqlValue[]])[]) => {
    const db = await openDatabase(location.url, OPTIONS)
    await db.transaction(async (tx) => {
      for (const [sql, ...params] of statements) await tx.run(sql, params)
    })
    await db.close()
  }
  const shapeOf = async (model: string) => {
    const db = await openDatabase(location.url, OPTIONS)
    const [row] = await db.reader.all('select shape from verso_schema where model = ?', [model])
    await db.close()
    return String(row?.['shape'])
  }

  test('a start builds the counters of a database without them, and outdated nodes stop writing', async () => {
    await filled(engine, location)
    const before = (await shapeOf(ITEM)).replace(/,"counted":\[[^\]]*\]/, '')
    await change(
      [`delete from verso_epoch where name = 'tables'`],
      ['drop table verso_count'],
      ['drop table verso_value_count'],
      ['update verso_schema set shape = ? where model = ?', before, ITEM],
      [
        'update verso_schema set shape = ? where model = ?',
        (await shapeOf(BOX)).replace(/,"counted":\[[^\]]*\]/, ''),
        BOX,
      ],
      [
        `update verso_schema set shape = replace(shape, '"counted"', '"unknown"') where model not in (?, ?)`,
        ITEM,
        BOX,
      ],
    )
    const service = await startService(engine, { location, models, settings: PATIENT })
    try {
      expect(await differencesIn(service.app)).toEqual([])
      const records = await enter(service, 'direct')
      expect(await wrongTotals(records, service.app.db.reader, seeded(1))).toEqual([])
      expect((await records.find(ITEM)).total).toBeGreaterThan(10)
      expect(await isSchemaCurrent(service.app.db.reader, new Map([[ITEM, before]]), [ITEM])).toBe(false)
    } finally {
      await service.close()
    }
  })

  describe('counters of models that change', () => {
    const lead = (definition: Definition): readonly ModelSource[] => [
      {
        file: 'lead.ts',
        definition: defineModel({
          name: 'count.Lead',
          ...definition,
          fields: { city: { type: 'string' }, ...definition.fields },
        }),
      },
    ]
    const stage = { type: 'string', default: 'new' } as const
    const label = { type: 'string', length: 40, computed: '<{city}>' } as const
    const changes: readonly Changed[] = [
      { what: 'an index', after: { indexes: [['city']] } },
      { what: 'a removed index', before: { indexes: [['city']] }, after: {} },
      {
        what: 'an archived flag',
        before: { indexes: [['city']] },
        after: { archived: true, indexes: [['city']] },
      },
      { what: 'a field with a default', after: { fields: { stage }, indexes: [['stage']] } },
      { what: 'a computed field', after: { fields: { label }, indexes: [['label']] } },
      {
        what: 'a renamed field',
        before: { fields: { place: { type: 'string' } }, indexes: [['place']] },
        after: { fields: { town: { type: 'string', renamedFrom: 'place' } }, indexes: [['town']] },
      },
    ]
    test.each(changes)('a start rebuilds the counters for $what', async ({ after, before = {} }) => {
      const first = await startService(engine, { location, models: lead(before), settings: PATIENT })
      const records = await enter(first, 'direct')
      const held = 'fields' in before ? { place: 'here' } : {}
      for (const city of ['Rome', 'Rome', null, 'Oslo']) await records.create('count.Lead', { city, ...held })
      await first.close()
      const second = await startService(engine, { location, models: lead(after), settings: PATIENT })
      expect(await differencesIn(second.app)).toEqual([])
      await (await enter(second, 'direct')).create('count.Lead', { city: 'Rome' })
      expect(await differencesIn(second.app)).toEqual([])
      await second.close()
    })

    test('a model that was dropped and declared again starts with empty counters', async () => {
      await filled(engine, location)
      const db = await openDatabase(location.url, OPTIONS)
      await applySchema(db, Catalog.from(lead({})), [ITEM, BOX])
      await db.close()
      const service = await startService(engine, { location, models, settings: PATIENT })
      expect(await differencesIn(service.app)).toEqual([])
      expect((await (await enter(service, 'direct')).find(ITEM)).total).toBe(0)
      await service.close()
    })
  })

  test('a rebuild during concurrent writes repairs counters that were changed directly', async () => {
    await filled(engine, location)
    await change(
      ['update verso_count set n = n + 5 where model = ? and level = 53', ITEM],
      ['update verso_count set n = n - 1 where model = ? and level = 16', ITEM],
      ['delete from verso_count where model = ? and level = 8', BOX],
      ['insert into verso_count (model, level, block, n) values (?, 8, 4711, 3)', ITEM],
      [`update verso_value_count set n = n + 1 where model = ? and field = 'stage' and value = '=new'`, ITEM],
      [`delete from verso_value_count where model = ? and field = 'box' and value = ''`, ITEM],
      [`insert into verso_value_count (model, field, value, n) values (?, 'tag', '=nobody', 2)`, ITEM],
      [`insert into verso_value_count (model, field, value, n) values (?, 'title', '=t', 2)`, ITEM],
      // Inserts a record without a Change.
      [`insert into "${ITEM}" ("version", "code", "stage", "rank") values (0, 'beside', 'won', 7)`],
    )
    const service = await startService(engine, { location, models, settings: PATIENT })
    try {
      const found = (await differencesIn(service.app)).map(({ model, what }) => `${model} ${what}`)
      expect(found).toEqual(
        expect.arrayContaining([
          `${ITEM} all`,
          `${ITEM} ids 0 to 65535`,
          `${BOX} ids 0 to 255`,
          `${ITEM} ids 1206016 to 1206271`,
          `${ITEM} stage = new`,
          `${ITEM} stage = won`,
          `${ITEM} box is null`,
          `${ITEM} tag = nobody`,
          `${ITEM} title, which is not counted`,
        ]),
      )
      const records = await enter(service, 'direct')
      let isOver = false
      const writers = [1, 2, 3].map(async (seed) => {
        const fixture = new CounterFixture(seeded(seed), `again ${seed}`)
        while (!isOver) await fixture.write(records, 3)
      })
      for (const model of service.app.catalog.storedModels) await rebuildCounters(service.app, model)
      isOver = true
      await Promise.all(writers)
      expect(await differencesIn(service.app)).toEqual([])
      expect(await wrongTotals(records, service.app.db.reader, seeded(2))).toEqual([])
    } finally {
      await service.close()
    }
  })
})

/** Starts a service, writes some records, and closes it. */
async function filled(engine: Engine, location: DatabaseLocation): Promise<void> {
  const service = await startService(engine, { location, models, settings: PATIENT })
  const records = await enter(service, 'direct')
  for (const kind of ['flat', 'tall', null]) await records.create(BOX, { name: 'b', kind })
  const fixture = new CounterFixture(seeded(7), 'filled')
  await records.save(
    ITEM,
    Array.from({ length: 30 }, () => ({ ...fixture.newItem(), archived: false })),
  )
  await records.create(ITEM, { code: 'new', stage: 'new', rank: 7 })
  await fixture.write(records, 10)
  await service.close()
}

async function differencesIn(app: App): Promise<CounterMismatch[]> {
  const all: CounterMismatch[] = []
  for (const model of app.catalog.storedModels) all.push(...(await findCounterDifferences(app, model)))
  return all
}
