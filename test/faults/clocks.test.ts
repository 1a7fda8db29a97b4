// Wrong clocks: times come from the database and do not go back; a point in time and compaction go by the order of commits.
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { ClockSync, type MachineClock } from '../../src/service/clock/clock-sync.js'
import { SteadyClock } from '../../src/service/clock/steady-clock.js'
import { compactLog } from '../../src/service/maintenance/retention.js'
import { createServer } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { createApp } from '../../src/service/create-app.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { bindRecords } from '../../src/service/records/records.js'
import { openDatabase } from '../../src/store/open.js'
import type { Database } from '../../src/store/engine/database.js'
import { changesSince } from '../log.js'
import { models } from '../models.js'
import {
  compactingByClock,
  compactingByTimes,
  endingBeforeFutureTimes,
  goingBack,
  trustingNearestTimes,
  withoutOrderOfTimes,
} from '../mutants/clocks.js'
import { enter, onEveryEngine, preparedLocation, startService, TestClock, type Engine } from '../targets.js'

const CIRCLE = 'rel.Circle'
const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS
const OPTIONS = { poolSize: 6, statementTimeoutMs: 30_000 }
const PATIENTLY = { timeout: 30_000, interval: 50 }

type Mutant = (db: Database) => Database
const unchanged: Mutant = (db) => db

test('a clock whose reference steps back runs at half speed until the reference has caught up', () => {
  let elapsedMs = 0
  const read = (referenceMs: number) => ({ referenceMs, sentAtMs: elapsedMs, receivedAtMs: elapsedMs })
  const clock = new SteadyClock(read(10_000), { maxLeadMs: Infinity, elapsed: () => elapsedMs })
  elapsedMs = 1_000
  clock.update(read(9_000))
  expect(clock.now()).toBe(11_000)
  elapsedMs = 2_000
  expect(clock.now()).toBe(11_500)
  elapsedMs = 5_000
  expect([clock.now(), clock.referenceMs]).toEqual([13_000, 13_000])
  elapsedMs = 6_000
  expect(clock.now()).toBe(14_000)
  clock.update(read(20_000))
  expect(clock.now()).toBe(20_000)
})

test('a clock follows a reference that steps back further than its limit', () => {
  const read = (referenceMs: number) => ({ referenceMs, sentAtMs: 0, receivedAtMs: 0 })
  const clock = new SteadyClock(read(10_000), { maxLeadMs: 2_000, elapsed: () => 0 })
  clock.update(read(8_000))
  expect(clock.now()).toBe(10_000)
  clock.update(read(7_000))
  expect(clock.now()).toBe(7_000)
})

test('a slow reading of the reference does not replace an exact one that agrees with it', () => {
  const clock = new SteadyClock(
    { referenceMs: 10_000, sentAtMs: 0, receivedAtMs: 0 },
    { maxLeadMs: 0, elapsed: () => 0 },
  )
  clock.update({ referenceMs: 10_000, sentAtMs: -500, receivedAtMs: 0 })
  expect(clock.now()).toBe(10_000)
  clock.update({ referenceMs: 11_000, sentAtMs: -500, receivedAtMs: 0 })
  expect(clock.now()).toBe(11_000)
})

/** Writes ten records. The times of the `future` ones become later by two hours, as a node ahead would have written them. */
async function withFutureTimes<T>(
  engine: Engine,
  { mutant = unchanged, future = [3, 4, 5] }: { mutant?: Mutant; future?: readonly number[] },
  work: (list: (asOf: number) => Promise<number>, times: readonly number[]) => Promise<T>,
): Promise<T> {
  const location = await preparedLocation(engine)
  const database = mutant(await openDatabase(location.url, OPTIONS))
  const service = await startService(engine, { location, database })
  try {
    const records = await enter(service, 'direct')
    service.clock.freeze()
    const times: number[] = []
    const ids: number[] = []
    for (let index = 0; index < 10; index++) {
      service.clock.advance(60_000)
      times.push(service.clock.now())
      ids.push((await records.create(CIRCLE, { name: `c${index}` })).data.id)
    }
    await service.app.db.transaction(async (tx) => {
      const sql = `update verso_log set at_ms = at_ms + ${2 * HOUR_MS} where model = ? and record = ?`
      for (const index of future) await tx.run(sql, [CIRCLE, ids[index] ?? 0])
    })
    const list = async (asOf: number) =>
      (await records.find(CIRCLE, { asOf: new Date(asOf).toISOString() })).total
    return await work(list, times)
  } finally {
    await service.close()
    location.remove()
  }
}

/** Compacts a Log whose newest Changes are seconds old. Returns the number of removed Changes. */
async function compactYoung(
  engine: Engine,
  {
    mutant = unchanged,
    clockAheadMs = 0,
    timesMs = 0,
  }: Readonly<{ mutant?: Mutant; clockAheadMs?: number; timesMs?: number }>,
): Promise<number> {
  const location = await preparedLocation(engine)
  const database = mutant(await openDatabase(location.url, OPTIONS))
  const service = await startService(engine, { location, database })
  try {
    const records = await enter(service, 'direct')
    await records.create(CIRCLE, { name: 'old' })
    service.clock.advance(3 * DAY_MS)
    const { data } = await records.create(CIRCLE, { name: 'young 0' })
    for (let version = 0; version < 5; version++)
      await records.update(CIRCLE, data.id, { version, name: `young ${version + 1}` })
    if (timesMs !== 0)
      await service.app.db.transaction((tx) =>
        tx.run(
          `update verso_log set at_ms = at_ms + ${timesMs} where record = ? and model = ? and version > 0`,
          [data.id, CIRCLE],
        ),
      )
    service.clock.advance(clockAheadMs)
    await compactLog(service.app, undefined, { days: 90 })
    return 6 - (await records.history(CIRCLE, data.id)).total
  } finally {
    await service.close()
    location.remove()
  }
}

/** A service runs with a clock that is an hour ahead, and starts again with the right one. Returns the times of all Changes and the warnings. */
async function restartAfterAnHour(engine: Engine, mutant = unchanged) {
  const location = await preparedLocation(engine)
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => lines.push(line) })
  const clock = new TestClock()
  clock.advance(HOUR_MS)
  const updated: unknown[] = []
  const versions: number[] = []
  let warnings: unknown
  for (const options of [{ clock }, { log }]) {
    const database = mutant(await openDatabase(location.url, OPTIONS))
    const app = await createApp({ models, database, settings: { db: location.url }, ...options })
    const records = bindRecords(app, async () => SERVICE_PRINCIPAL)
    const { data } = await records.create(CIRCLE, { name: `n${versions.length}` })
    const { data: next } = await records.update(CIRCLE, data.id, { version: 0, name: 'm' })
    versions.push(data.version, next.version)
    updated.push(data['createdOn'], next['updatedOn'])
    const server = await createServer(app, { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0 })
    const [url = ''] = await server.listen()
    const ready = (await (await fetch(`${url}/readyz`)).json()) as { data: [{ warnings?: unknown }] }
    warnings = ready.data[0].warnings
    await server.close()
    await app.close()
  }
  const db = await openDatabase(location.url, OPTIONS)
  const changes = (await changesSince(db.reader, 0, 10_000)).filter(({ model }) => model === CIRCLE)
  await db.close()
  location.remove()
  const times = changes.map(({ on }) => on)
  return { times, updated, versions, warnings, lines }
}

onEveryEngine((engine) => {
  test('a point in time includes what was committed before it, also after changes with times in the future', async () => {
    await withFutureTimes(engine, {}, async (list, times) => {
      const now = times.at(-1) ?? 0
      expect(await list(now)).toBe(10)
      expect(await list(now + 3 * HOUR_MS)).toBe(10)
      // Nothing tells when changes with wrong times happened, except the next change with a right one.
      const found = await Promise.all(times.map(list))
      expect(found).toEqual([1, 2, 3, 3, 3, 3, 7, 8, 9, 10])
      expect(await list((times[0] ?? 0) - 1)).toBe(0)
    })
  })

  test('a point in time includes right changes after wrong ones whose times are nearer to it', async () => {
    const future = [0, 1, 2, 3, 4]
    await withFutureTimes(engine, { future }, async (list, times) => {
      expect(await list((times[2] ?? 0) + 2 * HOUR_MS + 1)).toBe(10)
    })
  })

  test('the mutant that ends a point in time before the first later time is caught', async () => {
    const mutant = endingBeforeFutureTimes
    await withFutureTimes(engine, { mutant }, async (list, times) => {
      expect(await list(times.at(-1) ?? 0)).not.toBe(10)
    })
  })

  test('the mutant that goes by the nearest time alone is caught', async () => {
    const future = [0, 1, 2, 3, 4]
    await withFutureTimes(engine, { future, mutant: trustingNearestTimes }, async (list, times) => {
      expect(await list((times[2] ?? 0) + 2 * HOUR_MS + 1)).not.toBe(10)
    })
  })

  test('compaction with a clock 200 days ahead removes no change that is seconds old', async () => {
    expect(await compactYoung(engine, { clockAheadMs: 200 * DAY_MS })).toBe(0)
    const mutant = compactingByClock
    expect(await compactYoung(engine, { clockAheadMs: 200 * DAY_MS, mutant })).toBeGreaterThan(0)
  })

  test('compaction removes no young change with a time 200 days ago', async () => {
    expect(await compactYoung(engine, { timesMs: -200 * DAY_MS })).toBe(0)
    expect(await compactYoung(engine, { timesMs: -200 * DAY_MS, mutant: compactingByTimes })).toBeGreaterThan(
      0,
    )
  })

  test('a node whose clock is wrong gives the time of the database, warns once, and says when its clock is right again', async () => {
    const location = await preparedLocation(engine)
    const db = await openDatabase(location.url, OPTIONS)
    const lines: { level: number; msg: string }[] = []
    const log = pino({}, { write: (line) => lines.push(JSON.parse(line) as { level: number; msg: string }) })
    let aheadMs = 2 * HOUR_MS
    const elapsed = performance.now.bind(performance)
    const machine: MachineClock = { now: () => Date.now() + aheadMs, elapsed }
    const sync = await ClockSync.start(db, log, machine)
    const isRight = () => Math.abs(sync.clock.now() - Date.now()) < 1_000
    expect(isRight()).toBe(true)
    expect(sync.report().warnings).toEqual([
      expect.stringMatching(/^The clock of this machine is 7200 s ahead of the clock of the database\. /),
    ])
    aheadMs = -2 * HOUR_MS
    await expect.poll(() => sync.report().warnings?.[0], PATIENTLY).toMatch(/7200 s behind/)
    expect(isRight()).toBe(true)
    aheadMs = 0
    await expect.poll(() => sync.report().warnings, PATIENTLY).toEqual([])
    expect(isRight()).toBe(true)
    expect(lines.map(({ level }) => level)).toEqual([40, 30])
    await sync.close()
    await db.close()
    location.remove()
  })
})

test('on SQLite times do not go back after a restart with a clock that was set back', async () => {
  const { times, updated, versions, warnings, lines } = await restartAfterAnHour('sqlite')
  expect(times).toEqual([...times].sort())
  expect(times.slice(-4)).toEqual(updated)
  expect(versions).toEqual([0, 1, 0, 1])
  expect(warnings).toEqual([
    expect.stringMatching(/^The clock of the database is 3\d\d\d s behind the newest stored time\. /),
  ])
  expect(lines.filter((line) => line.includes('behind the newest stored time'))).toHaveLength(1)
})

test('the mutant that stores the times of a clock that was set back is caught', async () => {
  const { times } = await restartAfterAnHour('sqlite', goingBack)
  expect(times).not.toEqual([...times].sort())
})

test('on PostgreSQL times are those of the server, whatever was stored before', async () => {
  const { times, warnings } = await restartAfterAnHour('postgres')
  const last = Date.parse(times.at(-1) ?? '')
  expect(Math.abs(last - Date.now())).toBeLessThan(60_000)
  expect(warnings).toHaveLength(1)
})

/** Concurrent writes on two nodes, of which one is a second behind. Returns the times of the Changes. */
async function writeOnTwoNodes(engine: Engine, mutant = unchanged): Promise<readonly string[]> {
  const location = await preparedLocation(engine)
  const open = async () => mutant(await openDatabase(location.url, OPTIONS))
  const nodes = [
    await startService(engine, { location, database: await open() }),
    await startService(engine, { location, database: await open() }),
  ]
  nodes[0]?.clock.advance(-1_000)
  const writers = await Promise.all(nodes.map((node) => enter(node, 'direct')))
  for (let round = 0; round < 10; round++) {
    await Promise.all(
      writers.flatMap((records) => Array.from({ length: 5 }, () => records.create(CIRCLE, { name: 'one' }))),
    )
    for (const records of writers.toReversed())
      await records.save(
        CIRCLE,
        Array.from({ length: 20 }, () => ({ name: 'several' })),
      )
  }
  const changes = await changesSince(nodes[1]?.app.db.reader ?? failed(), 0, 10_000)
  await Promise.all(nodes.map((node) => node.close()))
  location.remove()
  return changes.filter(({ model }) => model === CIRCLE).map(({ on }) => on)
}

function failed(): never {
  throw new Error('no node has started')
}

onEveryEngine((engine) => {
  test('times in the feed do not go back while two nodes write, of which one is a second behind', async () => {
    const times = await writeOnTwoNodes(engine)
    expect(times).toHaveLength(500)
    expect(times).toEqual([...times].sort())
  })

  test('the mutant that stores times in another order than that of commits is caught', async () => {
    const times = await writeOnTwoNodes(engine, withoutOrderOfTimes)
    expect(times).not.toEqual([...times].sort())
  })
})
