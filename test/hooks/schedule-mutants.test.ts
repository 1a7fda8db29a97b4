// Broken bookkeeping of schedules, which the same scenarios catch that pass without it.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { every, type ScheduledWork } from '../../src/service/background/schedule.js'
import { startSchedules } from '../../src/service/background/schedule-runner.js'
import type { Database } from '../../src/store/engine/database.js'
import { listScheduleStates } from '../../src/store/hooks/schedules.js'
import { openDatabase } from '../../src/store/open.js'
import { ignoresScheduleLease, makesUpEachRun } from '../mutants/commit-hooks.js'
import {
  onEveryEngine,
  preparedLocation,
  startService,
  type DatabaseLocation,
  type Engine,
  type Service,
} from '../targets.js'

type Mutant = (db: Database) => Database

const HOUR_MS = 3_600_000
const PATIENTLY = { timeout: 60_000, interval: 20 }

const running: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of running.splice(0)) await close()
})

interface NodeOptions {
  readonly location: DatabaseLocation
  readonly mutant: Mutant | undefined
  readonly work: ScheduledWork
}

async function startNode(engine: Engine, { location, mutant, work }: NodeOptions): Promise<Service> {
  const options = { poolSize: 10, statementTimeoutMs: 10_000 }
  const database = mutant && mutant(await openDatabase(location.url, options))
  const service = await startService(engine, { models: [], location, ...(database ? { database } : {}) })
  const stop = startSchedules(service.app, [every('1h', 'work', work)])
  running.push(async () => {
    await stop()
    await service.close()
  })
  await expect.poll(() => listScheduleStates(service.app.db.reader), PATIENTLY).toHaveLength(1)
  return service
}

/** Waits until the work has run twice. Without a mutant that never happens, so two looks at the schedules, one a second, are enough. */
async function waitForSecondRun(countRuns: () => number, mutant: Mutant | undefined): Promise<void> {
  const endMs = performance.now() + (mutant ? PATIENTLY.timeout : 2_300)
  while (countRuns() < 2 && performance.now() < endMs) await sleep(PATIENTLY.interval)
}

/** A run takes long on one of two nodes. Returns the number of runs. */
async function runOnTwoNodes(engine: Engine, mutant?: Mutant): Promise<number> {
  const location = await preparedLocation(engine, [])
  let runs = 0
  let isOver = false
  const finish: (() => void)[] = []
  const work = async () => {
    runs++
    if (!isOver) await new Promise<void>((resolve) => finish.push(resolve))
  }
  const nodes = [
    await startNode(engine, { location, mutant, work }),
    await startNode(engine, { location, mutant, work }),
  ]
  for (const { clock } of nodes) clock.advance(HOUR_MS)
  await expect.poll(() => runs, PATIENTLY).toBeGreaterThan(0)
  await waitForSecondRun(() => runs, mutant)
  const found = runs
  isOver = true
  for (const end of finish) end()
  return found
}

/** No node runs for four intervals. Returns how many runs were missed before each run. */
async function missRuns(engine: Engine, mutant?: Mutant): Promise<number[]> {
  const location = await preparedLocation(engine, [])
  const missed: number[] = []
  const node = await startNode(engine, { location, mutant, work: (call) => missed.push(call.missed) })
  node.clock.advance(4.5 * HOUR_MS)
  await expect.poll(() => missed.length, PATIENTLY).toBeGreaterThan(0)
  await waitForSecondRun(() => missed.length, mutant)
  return missed
}

onEveryEngine((engine) => {
  test('one of two nodes runs a schedule, and a mutant without the lease runs it on both', async () => {
    expect(await runOnTwoNodes(engine)).toBe(1)
    expect(await runOnTwoNodes(engine, ignoresScheduleLease)).toBe(2)
  })

  test('missed runs are made up once, and a mutant makes up each', async () => {
    expect(await missRuns(engine)).toEqual([3])
    expect((await missRuns(engine, makesUpEachRun)).length).toBeGreaterThan(1)
  })
})
