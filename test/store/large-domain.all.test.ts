// A large domain: the first start creates its tables, and later starts are fast. Times are compared with the time that reading the model files takes.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { convertModels } from '../../src/cli/schema/models-command.js'
import { loadCatalog, loadModelsWithReport } from '../../src/cli/models/models.js'
import { createApp } from '../../src/service/create-app.js'
import { Catalog, type ModelSource } from '../../src/model/catalog/catalog.js'
import type { Field } from '../../src/model/values/field.js'
import type { Model } from '../../src/model/definition/model.js'
import { LARGE, writeLargeDomain } from '../large-domain.js'
import {
  enter,
  newLocation,
  onEveryEngine,
  startService,
  type Engine,
  type DatabaseLocation,
} from '../targets.js'

/** The time that opening a new database may take ÷ the time for the model files. PostgreSQL takes about 30, SQLite about 9. */
const MAX_FIRST_RATIO: Readonly<Record<Engine, number>> = { sqlite: 30, postgres: 100 }
/** The same for a database that has its tables, which takes about 0.5. */
const MAX_NEXT_RATIO = 1
const NEXT_STARTS = 5

const folder = mkdtempSync(path.join(tmpdir(), 'verso-large-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})

interface StartTimes {
  readonly loadMs: number
  readonly openMs: number
}

/** Starts the service from the model files: the time for the files, and the time for the database. */
async function timeStart(location: DatabaseLocation): Promise<StartTimes> {
  const sinceMs = performance.now()
  const catalog = await loadCatalog(folder)
  const loadedMs = performance.now()
  const app = await createApp({ models: catalog, settings: { db: location.url } })
  const openedMs = performance.now()
  await app.close()
  return { loadMs: loadedMs - sinceMs, openMs: openedMs - loadedMs }
}

let models: readonly ModelSource[] = []
beforeAll(async () => {
  const { files } = writeLargeDomain(folder)
  expect(files).toBeGreaterThan(LARGE.entities)
  models = (await loadModelsWithReport(folder)).sources
})

test('the large domain has the documented size', () => {
  const catalog = Catalog.from(models)
  const fields = catalog.models.flatMap((model) =>
    [...model.fields.values()].filter((field) => !field.isSystem),
  )
  expect(catalog.models).toHaveLength(LARGE.entities)
  expect(fields.length).toBeGreaterThanOrEqual(LARGE.fields)
  expect(fields.filter((field) => field.relation).length).toBeGreaterThanOrEqual(3_500)
})

test('the large domain exported as JSON loads to the same definitions', async () => {
  const out = path.join(folder, '..', `${path.basename(folder)}-json`)
  await convertModels(folder, 'json', out)
  const byName = (sources: readonly ModelSource[]) =>
    new Map(sources.map(({ definition }) => [(definition as Model).name, definition]))
  expect(byName((await loadModelsWithReport(out)).sources)).toEqual(byName(models))
  rmSync(out, { recursive: true })
})

/** A record of this model with its required fields only. */
function simplest(model: Model): Record<string, unknown> {
  const values: Readonly<Record<string, unknown>> = {
    ...{ string: 'x', text: 'x', integer: 1, long: 1, decimal: '1', boolean: true, enum: 'LOW' },
    ...{ date: '2024-02-29', time: '12:00:00', datetime: '2024-02-29T12:00:00Z' },
  }
  const required = [...model.fields.values()].filter((field) => field.required)
  return Object.fromEntries(required.map(({ name, type }) => [name, values[type]]))
}

const needsNeighbours = ({ fields }: Model) =>
  [...fields.values()].some((field) => field.required && field.relation)

/** An owner, its owned list, and the model of the members. */
function someFamily(catalog: Catalog): { owner: Model; list: Field; members: Model; back: string } {
  for (const owner of catalog.models) {
    for (const list of owner.fields.values()) {
      const back = list.relation?.mappedBy
      if (!list.relation?.owned || back === undefined) continue
      const members = catalog.getTarget(list.relation)
      if (members !== owner && !needsNeighbours(owner) && !needsNeighbours(members))
        return { owner, list, members, back }
    }
  }
  throw new Error('there is no such family')
}

/** Enough for a machine with ten other jobs. */
const PATIENCE_MS = 300_000

onEveryEngine((engine) => {
  let location: DatabaseLocation
  beforeAll(async () => {
    location = await newLocation(engine)
  })
  afterAll(() => {
    location.remove()
  })

  test(
    'the first start of a large domain creates all tables, and later ones open it faster than they read the model files',
    async () => {
      const first = await timeStart(location)
      const next: StartTimes[] = []
      for (let start = 0; start < NEXT_STARTS; start++) next.push(await timeStart(location))
      // The fastest starts are the least disturbed ones.
      const loadMs = Math.min(...next.map((start) => start.loadMs))
      const openMs = Math.min(...next.map((start) => start.openMs))
      expect(first.openMs / loadMs).toBeLessThan(MAX_FIRST_RATIO[engine])
      expect(openMs / loadMs).toBeLessThan(MAX_NEXT_RATIO)
      // The measurement shows the difference between a start that creates tables and one that does not.
      expect(first.openMs / loadMs).toBeGreaterThan(MAX_NEXT_RATIO)
    },
    PATIENCE_MS,
  )

  test(
    'a large domain is served over HTTP: an owner with members is created, read and found',
    async () => {
      const service = await startService(engine, { models, location })
      const records = await enter(service, 'http')
      const { owner, list, members, back } = someFamily(service.app.catalog)
      const child = simplest(members)
      const { data: made } = await records.create(owner.name, {
        ...simplest(owner),
        [list.name]: [child, child],
      })
      expect(await records.read(owner.name, made.id)).toMatchObject({
        id: made.id,
        [list.name]: [{ id: 1 }, { id: 2 }],
      })
      const criteria = [{ fieldName: `${back}.id`, operator: '=', value: made.id }]
      const found = await records.search(members.name, { fields: ['id', `${back}.id`], data: { criteria } })
      expect(found).toMatchObject({
        total: 2,
        data: [{ [`${back}.id`]: made.id }, { [`${back}.id`]: made.id }],
      })
      await service.close()
    },
    PATIENCE_MS,
  )
})
