// Nodes that could not reach the database for longer than their leases: the work goes on, on one node.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { afterEach, expect, test } from 'vitest'
import { every, type Schedule, type ScheduleCall } from '../../src/service/background/schedule.js'
import { startSchedules } from '../../src/service/background/schedule-runner.js'
import type { Database } from '../../src/store/engine/database.js'
import { listScheduleStates, type ScheduleState } from '../../src/store/hooks/schedules.js'
import { openDatabase } from '../../src/store/open.js'
import { renewsAllLeases, withStatements } from '../mutants/commit-hooks.js'
import {
  enter,
  onEveryEngine,
  preparedLocation,
  startService,
  type Engine,
  type Service,
} from '../targets.js'
import { CallNotes, createTaskModels, startCommitService, TASK } from './commit-fixture.js'

const HOUR_MS = 3_600_000
const PATIENTLY = { timeout: 60_000, interval: 20 }

const running: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of running.splice(0)) await close()
})

/** A database whose writing statements fail while `fails` is true for them. */
class FaultyDatabase {
  fails: (sql: string) => boolean = () => false

  async open(engine: Engine, models = createTaskModels(new CallNotes(), new CallNotes())) {
    const location = await preparedLocation(engine, models ?? [])
    const inner = await openDatabase(location.url, { poolSize: 10, statementTimeoutMs: 10_000 })
    const check = (sql: string) => {
      if (this.fails(sql)) throw new Error('the database is away')
    }
    const database = withStatements(inner, {
      run: (tx) => async (sql, params) => {
        check(sql)
        return tx.run(sql, params)
      },
    })
    return { location, database }
  }
}

/** An outage lasts longer than the lease of a hook that works, beside one that does not. Returns the changes that the hook gets. */
async function surviveOutage(engine: Engine, mutant: (db: Database) => Database): Promise<unknown[]> {
  const faulty = new FaultyDatabase()
  const { location, database } = await faulty.open(engine)
  const service = await startCommitService(engine, { location, database: mutant(database) })
  running.push(() => service.close())
  const { notes, clock } = service
  let finish: () => void = () => undefined
  notes.act = () => new Promise<void>((resolve) => (finish = resolve))
  const task = await service.create('v0')
  await expect.poll(() => notes.titles(), PATIENTLY).toEqual(['v0'])
  // The hook gets both changes in one page.
  const next = await service.update(task, { title: 'v1' })
  await service.update(next, { title: 'v2' })
  finish()
  await expect.poll(() => notes.titles(), PATIENTLY).toEqual(['v0', 'v1'])
  notes.act = () => undefined
  faulty.fails = (sql) => sql.includes('verso_hook')
  clock.advance(11_000)
  finish()
  // The node notices that it has no lease any more.
  await sleep(300)
  faulty.fails = () => false
  // Leases are renewed every three seconds, so those of work in progress do not expire.
  const endMs = performance.now() + 10_000
  while (!notes.titles().includes('v2') && performance.now() < endMs) {
    await sleep(500)
    clock.advance(1_000)
  }
  return notes.titles()
}

async function startSchedule(
  engine: Engine,
  schedule: Schedule,
  faulty = new FaultyDatabase(),
  lines: string[] = [],
): Promise<Service> {
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(line) })
  const { location, database } = await faulty.open(engine, [])
  const service = await startService(engine, { models: [], location, database, log })
  const stop = startSchedules(service.app, [schedule])
  running.push(async () => {
    await stop()
    await service.close()
  })
  await expect.poll(() => stateOf(service), PATIENTLY).toBeDefined()
  return service
}

const stateOf = async ({ app }: Service): Promise<ScheduleState | undefined> =>
  (await listScheduleStates(app.db.reader))[0]

onEveryEngine((engine) => {
  test('a hook continues after an outage that was longer than its lease, and a mutant that renews leases without work does not', async () => {
    const titles = await surviveOutage(engine, (db) => db)
    expect([...new Set(titles)]).toEqual(['v0', 'v1', 'v2'])
    // On a busy machine the lease of the mutant may expire before it is renewed.
    let isCaught = false
    for (let attempt = 0; attempt < 4 && !isCaught; attempt++)
      isCaught = !(await surviveOutage(engine, renewsAllLeases)).includes('v2')
    expect(isCaught).toBe(true)
  })

  test('a process that runs no background work registers new hooks: none of its changes is lost', async () => {
    const location = await preparedLocation(engine, createTaskModels(new CallNotes(), new CallNotes()))
    const models = createTaskModels(new CallNotes(), new CallNotes()) ?? []
    const former = await startService(engine, { location, models })
    await former.app.db.transaction((tx) => tx.run('delete from verso_hook'))
    await former.close()
    const writer = await startService(engine, { location, models })
    await (await enter(writer, 'direct')).create(TASK, { title: 'written' })
    await writer.close()
    const notes = new CallNotes()
    const node = await startCommitService(engine, { location, notes })
    running.push(() => node.close())
    await expect.poll(() => notes.titles(), PATIENTLY).toEqual(['written'])
  })

  test('a run whose lease another node has taken is told by its signal, and stores nothing', async () => {
    const calls: ScheduleCall[] = []
    let finish: () => void = () => undefined
    const lines: string[] = []
    const work = every('1h', 'work', async (call) => {
      calls.push(call)
      await new Promise<void>((resolve) => (finish = resolve))
    })
    const service = await startSchedule(engine, work, new FaultyDatabase(), lines)
    service.clock.advance(HOUR_MS)
    await expect.poll(() => calls.length, PATIENTLY).toBe(1)
    await expect.poll(async () => (await stateOf(service))?.lease, PATIENTLY).not.toBeNull()
    const other = service.clock.now() + HOUR_MS
    await service.app.db.transaction((tx) =>
      tx.run(`update verso_schedule set lease = 'other', leased_until_ms = ${other}`),
    )
    expect(calls[0]?.signal.aborted).toBe(false)
    await expect.poll(() => calls[0]?.signal.aborted, PATIENTLY).toBe(true)
    expect(lines.join('')).toContain('another node runs this schedule, too')
    finish()
    await sleep(1_200)
    expect(await stateOf(service)).toMatchObject({ lease: 'other', lastMs: null })
  })

  test('a run that throws the reason of its signal has no result, and the schedule runs again when its lease is free', async () => {
    let runs = 0
    const lines: string[] = []
    const work = every('1h', 'work', async ({ signal }) => {
      if (runs++ > 0) return
      await once(signal, 'abort')
      signal.throwIfAborted()
    })
    const service = await startSchedule(engine, work, new FaultyDatabase(), lines)
    const lease = async (name: string | null) =>
      service.app.db.transaction((tx) => tx.run('update verso_schedule set lease = ?', [name]))
    service.clock.advance(HOUR_MS)
    await expect.poll(async () => (await stateOf(service))?.lease, PATIENTLY).not.toBeNull()
    await lease('other')
    await expect.poll(() => lines.join(''), PATIENTLY).toContain('another node runs this schedule, too')
    await sleep(100)
    expect(runs).toBe(1)
    await lease(null)
    await expect.poll(() => runs, PATIENTLY).toBe(2)
    await expect.poll(() => stateOf(service), PATIENTLY).toMatchObject({ lease: null, error: null })
    expect(lines.join('')).not.toContain('failed')
  })

  test('the result of a run that cannot be stored is stored later, and the schedule does not run again', async () => {
    let runs = 0
    const faulty = new FaultyDatabase()
    const service = await startSchedule(
      engine,
      every('1h', 'work', () => runs++),
      faulty,
    )
    let left = 3
    faulty.fails = (sql) => sql.includes('set next_ms = ?, last_ms') && left-- > 0
    service.clock.advance(HOUR_MS)
    await expect.poll(() => stateOf(service), PATIENTLY).toMatchObject({ lease: null, error: null })
    await expect.poll(async () => (await stateOf(service))?.lastMs, PATIENTLY).not.toBeNull()
    expect([left, runs]).toEqual([-1, 1])
  })

  test('a shorter interval whose next run is over begins now: no run was missed', async () => {
    const calls: ScheduleCall[] = []
    const first = await startSchedule(
      engine,
      every('1d', 'work', () => undefined),
    )
    await running.pop()?.()
    const service = await startService(engine, { models: [], location: first.location })
    service.clock.advance(10 * HOUR_MS)
    const stop = startSchedules(service.app, [every('1h', 'work', (call) => calls.push(call))])
    running.push(async () => {
      await stop()
      await service.close()
    })
    await expect.poll(() => calls.length, PATIENTLY).toBe(1)
    expect(calls[0]).toMatchObject({ missed: 0 })
  })
})
