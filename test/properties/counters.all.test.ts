// Totals and pages equal plain SQL during random concurrent writes.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { importRecords } from '../../src/service/transfer/import.js'
import type { App } from '../../src/service/context/app.js'
import { recordsFor } from '../../src/service/records/records.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records } from '../../src/wire.js'
import {
  countingApart,
  ignoringArchived,
  ignoringUpdatedValues,
  readThenWrite,
  withoutDeletes,
} from '../mutants/counters.js'
import { BOX, CounterFixture, ITEM, models, wrongTotals } from '../counter-fixture.js'
import { CountingDatabase } from '../counting-database.js'
import {
  identityIn,
  enter,
  newLocation,
  onEveryEngine,
  startService,
  type Engine,
  type Service,
} from '../targets.js'
import { sourcesIn, writeFiles } from '../transfer/transfer-fixture.js'
import type { Mutant } from '../faults/nodes.js'
import { seeded } from './history-fixture.js'

const WRITERS = 6
const WRITES_EACH = 12
const ROUNDS = 2
/** Around the ends of blocks of every size, and up to the largest ids. */
const FAR_IDS = [8, 16, 20, 24, 40]
  .flatMap((bits) => [-2, -1, 0, 1].map((step) => 2 ** bits + step))
  .concat([2 ** 50 - 1, 2 ** 50])

const OPTIONS = { poolSize: 12, statementTimeoutMs: 60_000 }
const scratch = mkdtempSync(path.join(tmpdir(), 'verso-counters-'))
afterAll(() => {
  rmSync(scratch, { recursive: true })
})

interface Trial {
  readonly seed: number
  readonly mutant?: Mutant
  readonly appMutant?: (app: App) => App
}

/** Writes through two nodes on one database; returns the errors found during and after. */
async function tryOut(
  engine: Engine,
  { seed, mutant = (db) => db, appMutant = (app) => app }: Trial,
): Promise<string[]> {
  const location = await newLocation(engine)
  const nodes: Service[] = []
  const random = seeded(seed)
  const wrong: string[] = []
  try {
    for (let node = 0; node < 2; node++) {
      const database = mutant(await openDatabase(location.url, OPTIONS))
      nodes.push(await startService(engine, { location, database, models }))
    }
    const [first] = nodes as [Service, ...Service[]]
    const transports = await Promise.all(
      nodes.map(async (node) => recordsFor(appMutant(node.app), await identityIn(node))),
    )
    const [plain] = transports as [Records, ...Records[]]
    for (const kind of ['flat', 'tall', null]) await plain.create(BOX, { name: 'b', kind })
    for (let round = 0; round < ROUNDS && wrong.length === 0; round++) {
      if (round === 1) await importFar(appMutant(first.app), random)
      let isOver = false
      const watcher = watch(plain, () => isOver)
      // Awaited after all writers are done.
      watcher.catch(() => undefined)
      await Promise.all(
        Array.from({ length: WRITERS }, (_, writer) =>
          new CounterFixture(random, `${round} ${writer}`).write(
            transports[writer % 2] ?? plain,
            WRITES_EACH,
          ),
        ),
      )
      isOver = true
      wrong.push(...(await watcher), ...(await wrongTotals(plain, first.app.db.reader, random)))
    }
    return wrong
  } finally {
    for (const node of nodes) await node.close()
    location.remove()
  }
}

/** A page with all records has their number as its total: both come from one snapshot. */
async function watch(records: Records, isOver: () => boolean): Promise<string[]> {
  const wrong: string[] = []
  while (!isOver()) {
    // Searches of small tables run in the process, so a loop of them alone would keep the writers from their turn.
    await new Promise(setImmediate)
    for (const filter of [undefined, `stage = 'new'`, 'box is null']) {
      const { total, data } = await records.find(ITEM, { limit: 1_000, ...(filter ? { filter } : {}) })
      if (total !== data.length) wrong.push(`${filter ?? 'all'}: ${total} beside ${data.length} records`)
    }
  }
  return wrong
}

let folders = 0

async function importFar(app: App, random: () => number): Promise<void> {
  const fixture = new CounterFixture(random, 'far')
  const lines = FAR_IDS.map((id) => `${JSON.stringify({ id, version: 0, ...fixture.newItem() })}\n`)
  const folder = writeFiles(path.join(scratch, String(++folders)), { [`${ITEM}.ndjson`]: lines.join('') })
  await importRecords(app, sourcesIn(app, folder))
}

onEveryEngine((engine) => {
  test.each([1, 2])('totals stay exact while two nodes write at random (seed %i)', async (seed) => {
    expect(await tryOut(engine, { seed })).toEqual([])
  })

  const mutants: Readonly<Record<string, Omit<Trial, 'seed'>>> = {
    'that does not subtract deleted records': { mutant: withoutDeletes },
    'that counts in another transaction': { mutant: countingApart },
    'that reads a counter before it writes it': { mutant: readThenWrite },
    'that counts archived records': { appMutant: ignoringArchived },
    'that ignores updates of counted fields': { appMutant: ignoringUpdatedValues },
  }
  test.each(Object.entries(mutants))('a mutant of the counters %s is caught', async (_, mutant) => {
    expect(await tryOut(engine, { seed: 1, ...mutant })).not.toEqual([])
  })

  describe('statements of a page', () => {
    test.each([
      ['a page by id', {}],
      ['a page at a large offset', { offset: 5_000 }],
      ['a page of one value', { filter: `stage = 'new'` }],
      ['a page of records without a value', { filter: 'box is null' }],
      ['a page of records that refer to one record', { filter: 'box = 1' }],
    ])('%s takes its total from the counters, without count(*)', async (_, query) => {
      const location = await newLocation(engine)
      const database = new CountingDatabase(await openDatabase(location.url, OPTIONS))
      const service = await startService(engine, { location, database, models })
      const records = await enter(service, 'direct')
      for (const code of ['c', 'd']) await records.create(ITEM, { code, stage: 'new' })
      // A table that fits on one page is counted by the statement that reads the page.
      const find = () => records.find(ITEM, { ...query, limit: 1 })
      // The first search measures at most 1,000 rows of the table.
      await find()
      const statements = await database.statementsOf(find)
      expect(
        statements.filter((sql) => sql.includes('verso_count') || sql.includes('verso_value_count')),
      ).not.toEqual([])
      expect(statements.filter((sql) => sql.includes('count(*)'))).toEqual([])
      await service.close()
      location.remove()
    })
  })
})
