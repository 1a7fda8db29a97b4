// Compaction runs while others write and read: everything above the retention floor stays, and nobody waits.
import { expect, test } from 'vitest'
import { compactLog } from '../../src/service/maintenance/retention.js'
import { readVisibleFeedPage } from '../../src/service/log/feed.js'
import { purgeHistory } from '../../src/service/maintenance/purge.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { readRetentionFloor } from '../../src/store/log/feed.js'
import { LOG_TABLE } from '../../src/store/sql/log-insert.js'
import { openDatabase } from '../../src/store/open.js'
import type { Database } from '../../src/store/engine/database.js'
import type { Change, Records, WireRecord } from '../../src/wire.js'
import { withoutRetentionFloor } from '../mutants/history.js'
import {
  enter,
  onEveryEngine,
  preparedLocation,
  catchError,
  startService,
  type Engine,
  type Service,
} from '../targets.js'
import { createContext } from '../../src/service/context/context.js'

const CIRCLE = 'rel.Circle'
const DAY_MS = 24 * 60 * 60_000

interface Fixture {
  readonly service: Service
  readonly records: Records
  readonly all: readonly WireRecord[]
}

/** Runs `work` with records that have ten versions each, all of them two days old. */
async function withOldRecords(
  engine: Engine,
  count: number,
  work: (fixture: Fixture) => Promise<void>,
  mutant: (db: Database) => Database = (db) => db,
): Promise<void> {
  const location = await preparedLocation(engine)
  const database = mutant(await openDatabase(location.url, { poolSize: 9, statementTimeoutMs: 30_000 }))
  const service = await startService(engine, { location, database, settings: { retention: { versions: 3 } } })
  try {
    const records = await enter(service, 'direct')
    const { data: all } = await records.save(
      CIRCLE,
      Array.from({ length: count }, (_, index) => ({ name: `c${index} 0` })),
    )
    for (let version = 0; version < 9; version++)
      await records.save(
        CIRCLE,
        all.map(({ id }, index) => ({ id, version, name: `c${index} ${version + 1}` })),
      )
    service.clock.advance(2 * DAY_MS)
    await work({ service, records, all })
  } finally {
    await service.close()
    location.remove()
  }
}

/** All changes after a number; a gap between two changes of a record is an error. */
async function follow({ service }: Fixture, since: number): Promise<{ changes: Change[]; faults: string[] }> {
  const changes: Change[] = []
  for (let next = since; ;) {
    const page = await readVisibleFeedPage(createContext(service.app, SERVICE_PRINCIPAL), {
      since: next,
      limit: 500,
      models: undefined,
      waitMs: 0,
    })
    changes.push(...page.data)
    if (page.isLast) break
    next = page.next
  }
  const last = new Map<string, number>()
  const faults: string[] = []
  for (const { model, id, version, action } of changes) {
    const key = `${model} ${id}`
    const before = last.get(key)
    if (before === undefined ? since === 0 && action !== 'create' : version !== before + 1)
      faults.push(`${key} came to ${version} from ${before ?? 'nowhere'}`)
    last.set(key, version)
  }
  return { changes, faults }
}

/** Reads the change log from the beginning: returns its gaps, or nothing if the service answers that it is gone. */
async function faultsFromTheBeginning(fixture: Fixture): Promise<string[]> {
  try {
    return (await follow(fixture, 0)).faults
  } catch (error) {
    expect(error).toMatchObject({ kind: 'gone' })
    return []
  }
}

onEveryEngine((engine) => {
  test('compaction keeps the newest versions readable and answers gone for removed ones', async () => {
    await withOldRecords(engine, 20, async (fixture) => {
      const { service, records, all } = fixture
      await records.remove(CIRCLE, all[0]?.id ?? 0)
      expect(await compactLog(service.app)).toBe(20 * 7 + 1)
      expect(await compactLog(service.app)).toBe(0)
      const id = all[1]?.id ?? 0
      const { data, total } = await records.history(CIRCLE, id)
      expect([total, data.map(({ version }) => version)]).toEqual([3, [9, 8, 7]])
      expect((await records.readAt(CIRCLE, id, 7))['name']).toBe('c1 7')
      // The oldest change left holds the values before it.
      expect((await records.readAt(CIRCLE, id, 6))['name']).toBe('c1 6')
      expect((await catchError(records.readAt(CIRCLE, id, 5))).kind).toBe('gone')
      expect((await catchError(records.readAt(CIRCLE, id, 10))).kind).toBe('not-found')
      expect((await catchError(follow(fixture, 0))).kind).toBe('gone')
      const before = new Date(service.clock.now() - 3 * DAY_MS).toISOString()
      expect((await catchError(records.find(CIRCLE, { asOf: before }))).kind).toBe('gone')
      expect((await catchError(records.readAt(CIRCLE, id, before))).kind).toBe('gone')
      const day = new Date(service.clock.now() - DAY_MS).toISOString()
      expect((await records.find(CIRCLE, { asOf: day })).total).toBe(20)
      const conflict = await catchError(records.update(CIRCLE, id, { version: 2, name: 'x' }))
      expect(conflict.details.data).toMatchObject({ current: 9, baseKnown: false })
      const back = await records.revert(CIRCLE, all[0]?.id ?? 0, { version: 10, to: 9 })
      expect(back.data).toMatchObject({ version: 11, name: 'c0 9' })
    })
  })

  test('compaction by days keeps the newest change of every record', async () => {
    await withOldRecords(engine, 5, async ({ service, records, all }) => {
      const id = all[2]?.id ?? 0
      await compactLog(service.app, undefined, { days: 3 })
      expect((await records.history(CIRCLE, id)).total).toBe(10)
      await compactLog(service.app, undefined, { days: 1 })
      expect((await records.history(CIRCLE, id)).data.map(({ version }) => version)).toEqual([9])
      expect((await records.readAt(CIRCLE, id, 9))['name']).toBe('c2 9')
    })
  })

  test('compaction on two nodes during writes removes no change above the retention floor', async () => {
    await withOldRecords(engine, 60, async (fixture) => {
      const { service, records, all } = fixture
      const since = (await records.find(CIRCLE, { limit: 1 })).seq
      const other = await startService(engine, {
        location: service.location,
        settings: { retention: { versions: 3 } },
      })
      other.clock.advance(2 * DAY_MS)
      let isOver = false
      const written = new Map<number, number>()
      const writers = [0, 1].map(async (writer) => {
        for (let round = 0; !isOver; round++) {
          const mine = all.filter((_, index) => index % 2 === writer)
          const id = mine[round % mine.length]?.id ?? 0
          const version = written.get(id) ?? 9
          await records.update(CIRCLE, id, { version, name: `w${round}` })
          written.set(id, version + 1)
        }
      })
      const removed = await Promise.all([compactLog(service.app), compactLog(other.app)])
      isOver = true
      await Promise.all(writers)
      // Changes younger than a day stay.
      expect(removed[0] + removed[1]).toBeGreaterThanOrEqual(60 * 7)
      const { changes, faults } = await follow(fixture, since)
      expect(faults).toEqual([])
      const reached = new Map(changes.map(({ id, version }) => [id, version]))
      for (const [id, version] of written) expect([id, reached.get(id)]).toEqual([id, version])
      await other.close()
    })
  })

  test('an aborted compaction leaves a change log without gaps above the retention floor', async () => {
    await withOldRecords(engine, 60, async (fixture) => {
      const { service } = fixture
      const stop = new AbortController()
      const db: Database = {
        ...{
          dialect: service.app.db.dialect,
          reader: service.app.db.reader,
          queryPool: service.app.db.queryPool,
        },
        ...{ blobs: service.app.db.blobs, commits: service.app.db.commits },
        writability: () => service.app.db.writability(),
        gauges: () => service.app.db.gauges(),
        measure: () => service.app.db.measure(),
        transaction: async (work, options) => {
          const result = await service.app.db.transaction(work, options)
          stop.abort()
          return result
        },
        close: () => service.app.db.close(),
      }
      const removed = await compactLog({ ...service.app, db }, stop.signal)
      expect(removed).toBeGreaterThan(0)
      expect(removed).toBeLessThan(60 * 7)
      const horizon = await readRetentionFloor(service.app.db.reader)
      const { faults } = await follow(fixture, horizon)
      expect(faults).toEqual([])
      expect(await faultsFromTheBeginning(fixture)).toEqual([])
    })
  })

  test('the mutant that does not raise the retention floor is caught', async () => {
    await withOldRecords(
      engine,
      10,
      async (fixture) => {
        await compactLog(fixture.service.app)
        expect(await faultsFromTheBeginning(fixture)).not.toEqual([])
      },
      withoutRetentionFloor,
    )
  })

  test('compaction slows concurrent writes down by less than factor 5', async () => {
    await withOldRecords(engine, 300, async ({ service, records, all }) => {
      const latencies = async (isOver: () => boolean, most: number) => {
        const took: number[] = []
        for (let round = 0; !isOver() && round < most; round++) {
          const start = performance.now()
          await records.create(CIRCLE, { name: `l${round}` })
          took.push(performance.now() - start)
        }
        return took.sort((a, b) => a - b)[Math.floor(took.length / 2)] ?? 0
      }
      const alone = await latencies(() => false, 100)
      let isOver = false
      const compacting = compactLog(service.app).finally(() => {
        isOver = true
      })
      const beside = await latencies(() => isOver, 10_000)
      await compacting
      expect(all.length).toBe(300)
      expect(beside / alone).toBeLessThan(5)
    })
  })

  test('a purge removes the values from the change log, and the feed still ends with the current record', async () => {
    await withOldRecords(engine, 2, async (fixture) => {
      const { service, records, all } = fixture
      const [kept, gone] = all.map(({ id }) => id)
      const model = service.app.catalog.get(CIRCLE)
      await records.remove(CIRCLE, gone ?? 0)
      expect(await purgeHistory(service.app, model, kept ?? 0)).toEqual({ changes: 10, isThere: true })
      expect(await purgeHistory(service.app, model, gone ?? 0)).toEqual({ changes: 11, isThere: false })
      expect((await catchError(purgeHistory(service.app, model, 99_999))).kind).toBe('not-found')
      const rows = await service.app.db.reader.all(`select changes from ${LOG_TABLE} where model = ?`, [
        CIRCLE,
      ])
      expect(JSON.stringify(rows).match(/c\d \d/g)).toEqual(['c0 9'])
      const { data, total } = await records.history(CIRCLE, kept ?? 0)
      expect([total, data.every(({ purged }) => purged)]).toEqual([10, true])
      expect(data[0]?.changes).toEqual({ name: { before: null, after: 'c0 9' } })
      for (let since = 0; since < (data[0]?.seq ?? 0); since++) {
        const fields: Record<string, unknown> = {}
        for (const change of (await follow(fixture, since)).changes)
          if (change.model === CIRCLE && change.id === kept)
            for (const [name, { after }] of Object.entries(change.changes)) fields[name] = after
        expect([since, fields]).toEqual([since, { name: 'c0 9' }])
      }
      expect((await catchError(records.readAt(CIRCLE, kept ?? 0, 8))).kind).toBe('gone')
      expect((await records.readAt(CIRCLE, kept ?? 0, 9))['name']).toBe('c0 9')
      const back = await catchError(records.revert(CIRCLE, gone ?? 0, { version: 10, to: 9 }))
      expect(back.kind).toBe('gone')
      const conflict = await catchError(records.update(CIRCLE, kept ?? 0, { version: 2, name: 'x' }))
      expect(conflict.details.data).toMatchObject({ baseKnown: false })
      const events = await records.find('verso.auth.Event', {
        filter: "kind = 'history-purged'",
        sortBy: 'id',
      })
      expect(events.data.map(({ note }) => note)).toEqual([`${CIRCLE} ${kept}`, `${CIRCLE} ${gone}`])
    })
  })
})
