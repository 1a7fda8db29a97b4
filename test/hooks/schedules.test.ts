// Schedules run on one node at a time, on a grid of their interval, and make up for missed runs once.
import { pino, type Logger } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { createApp } from '../../src/service/create-app.js'
import { every, isSchedule, type Schedule, type ScheduleCall } from '../../src/service/background/schedule.js'
import { startSchedules } from '../../src/service/background/schedule-runner.js'
import { listScheduleStates, type ScheduleState } from '../../src/store/hooks/schedules.js'
import { onEveryEngine, preparedLocation, startService, type Engine, type Service } from '../targets.js'

const HOUR_MS = 3_600_000
const PATIENTLY = { timeout: 60_000, interval: 20 }
const Task = defineModel({ name: 'job.Task', fields: { title: { type: 'string' } } })
const models = [{ file: 'schedules.test.ts', definition: Task }]

const running: { stop: () => Promise<void>; service: Service }[] = []
afterEach(async () => {
  for (const { stop, service } of running.splice(0)) {
    await stop()
    await service.close()
  }
})

async function start(
  engine: Engine,
  schedules: readonly Schedule[],
  { given, ...options }: { given?: Service; log?: Logger } = {},
): Promise<Service> {
  const location = given?.location ?? (await preparedLocation(engine, models))
  const service = await startService(engine, { models, location, ...options })
  if (given) service.clock.advance(given.clock.now() - Date.now())
  running.push({ service, stop: startSchedules(service.app, schedules) })
  await expect.poll(() => stateOf(service), PATIENTLY).toBeDefined()
  return service
}

const stateOf = async ({ app }: Service): Promise<ScheduleState | undefined> =>
  (await listScheduleStates(app.db.reader))[0]

/** Waits until the schedule was looked at again, which happens every second. */
const oneLook = () => new Promise((resolve) => setTimeout(resolve, 1_200))

onEveryEngine((engine) => {
  test('a schedule runs one interval after it is first seen, and then once for each interval', async () => {
    const calls: ScheduleCall[] = []
    const hourly = every('1h', 'count', (call) => calls.push(call))
    const service = await start(engine, [hourly])
    const first = (await stateOf(service))?.nextMs ?? 0
    expect(Math.abs(first - service.clock.now() - HOUR_MS)).toBeLessThan(10_000)
    await oneLook()
    expect(calls).toEqual([])
    service.clock.advance(HOUR_MS)
    await expect
      .poll(() => stateOf(service), PATIENTLY)
      .toMatchObject({ nextMs: first + HOUR_MS, error: null })
    expect(calls).toMatchObject([{ name: 'count', missed: 0, on: new Date(first).toISOString() }])
    await oneLook()
    expect(calls).toHaveLength(1)
  })

  test('runs that were missed are made up once', async () => {
    const calls: ScheduleCall[] = []
    const service = await start(engine, [every('1h', 'count', (call) => calls.push(call))])
    const first = (await stateOf(service))?.nextMs ?? 0
    service.clock.advance(13.5 * HOUR_MS)
    await expect.poll(() => stateOf(service), PATIENTLY).toMatchObject({ nextMs: first + 13 * HOUR_MS })
    await oneLook()
    expect(calls).toMatchObject([{ missed: 12, on: new Date(first + 12 * HOUR_MS).toISOString() }])
  })

  test('a schedule may do everything, and an error is stored and does not stop the next run', async () => {
    let isBroken = true
    const service = await start(engine, [
      every('1h', 'work', async ({ records }) => {
        if (isBroken) throw new Error('no connection')
        await records.of(Task).create({ title: 'made' })
      }),
    ])
    service.clock.advance(HOUR_MS)
    await expect
      .poll(() => stateOf(service), PATIENTLY)
      .toMatchObject({ error: 'no connection', lease: null })
    isBroken = false
    service.clock.advance(HOUR_MS)
    await expect.poll(() => stateOf(service), PATIENTLY).toMatchObject({ error: null })
    expect(await service.app.db.reader.all('select "title" from "job.Task"')).toEqual([{ title: 'made' }])
  })

  test('of two nodes one runs, and no run overlaps another', async () => {
    let [runs, current, most] = [0, 0, 0]
    let finish: () => void = () => undefined
    const work = every('1h', 'work', async () => {
      runs++
      most = Math.max(most, ++current)
      await new Promise<void>((resolve) => (finish = resolve))
      current--
    })
    const first = await start(engine, [work])
    const second = await start(engine, [work], { given: first })
    for (const { clock } of [first, second]) clock.advance(HOUR_MS)
    await expect.poll(() => runs, PATIENTLY).toBe(1)
    // The next run is due while this one goes on. Its lease is renewed.
    await new Promise((resolve) => setTimeout(resolve, 3_500))
    for (const { clock } of [first, second]) clock.advance(5_000)
    await oneLook()
    expect(runs).toBe(1)
    finish()
    await expect.poll(() => stateOf(first), PATIENTLY).toMatchObject({ lease: null })
    expect([runs, most]).toEqual([1, 1])
  })

  test('a node that dies during a run leaves it to another node', async () => {
    const runs: string[] = []
    const first = await start(engine, [
      every('1h', 'work', () => {
        runs.push('first')
        return new Promise(() => undefined)
      }),
    ])
    first.clock.advance(HOUR_MS)
    await expect.poll(() => runs, PATIENTLY).toEqual(['first'])
    // Without background work the node does not renew its lease, as if it had died.
    await first.app.stopBackgroundWork()
    await first.app.db.transaction((tx) =>
      tx.run("update verso_schedule set lease = 'dead', leased_until_ms = 0"),
    )
    const second = await start(engine, [every('1h', 'work', () => runs.push('second'))], { given: first })
    await expect.poll(() => runs, PATIENTLY).toEqual(['first', 'second'])
    await expect.poll(() => stateOf(second), PATIENTLY).toMatchObject({ lease: null, error: null })
  })

  test('the log says once that a run takes longer than its interval', async () => {
    const lines: string[] = []
    const log = pino({ level: 'warn' }, { write: (line) => lines.push(line) })
    let runs = 0
    let finish: () => void = () => undefined
    const service = await start(
      engine,
      [
        every('1h', 'slow', () => {
          runs++
          return new Promise<void>((resolve) => (finish = resolve))
        }),
      ],
      { log },
    )
    service.clock.advance(HOUR_MS)
    await expect.poll(() => runs, PATIENTLY).toBe(1)
    await oneLook()
    expect(lines).toEqual([])
    service.clock.advance(HOUR_MS + 1)
    await expect.poll(() => lines.length, PATIENTLY).toBe(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 40, schedule: 'slow' })
    expect(lines[0]).toContain('takes longer than its interval')
    await oneLook()
    expect([lines.length, runs]).toEqual([1, 1])
    finish()
    // The next run is made up for, and the warning is not repeated for a run that has just begun.
    await expect.poll(() => runs, PATIENTLY).toBe(2)
    finish()
    await oneLook()
    expect(lines).toHaveLength(1)
  })

  test('a changed interval counts from the last planned run', async () => {
    const first = await start(engine, [every('1d', 'work', () => undefined)])
    const seen = ((await stateOf(first))?.nextMs ?? 0) - 24 * HOUR_MS
    await running[0]?.stop()
    await start(engine, [every('2h', 'work', () => undefined)], { given: first })
    await expect
      .poll(() => stateOf(first), PATIENTLY)
      .toMatchObject({ intervalMs: 2 * HOUR_MS, nextMs: seen + 2 * HOUR_MS })
  })
})

describe('the definition of a schedule', () => {
  test('is frozen and recognized', () => {
    const schedule = every('15m', 'work', () => undefined)
    expect(schedule).toMatchObject({ name: 'work', intervalMs: 900_000 })
    expect(Object.isFrozen(schedule)).toBe(true)
    expect([isSchedule(schedule), isSchedule({ ...schedule }), isSchedule(null)]).toEqual([
      true,
      false,
      false,
    ])
  })

  test.for(['', '1', '1 h', '1.5h', '0s', '-1h', '366d', '99999999999s', '1w', 'h', '１h'])(
    'the interval "%s" is refused',
    (interval) => {
      expect(() => every(interval, 'work', () => undefined)).toThrow(
        /must be a whole number with s, m, h or d/,
      )
    },
  )

  test.for(['1s', '365d', '525600m'])('the interval %s is accepted', (interval) => {
    expect(isSchedule(every(interval, 'work', () => undefined))).toBe(true)
  })

  test.for(['', 'two words', 'a/b', 'ä', 'x'.repeat(101)])('the name "%s" is refused', (name) => {
    expect(() => every('1h', name, () => undefined)).toThrow(/must have 1 to 100 letters, digits, _ or -/)
  })

  test('two schedules of one name, and other values, stop the start', async () => {
    const schedule = every('1h', 'work', () => undefined)
    const schedules = [schedule, every('2h', 'work', () => undefined), { name: 'x' } as Schedule]
    const start = createApp({ models, settings: { db: 'sqlite::memory:' }, schedules })
    await expect(start).rejects.toThrow(ConfigError)
    await expect(start).rejects.toThrow(
      /two schedules with the name "work"[^]*schedules\[2\] is not a schedule/,
    )
  })
})
