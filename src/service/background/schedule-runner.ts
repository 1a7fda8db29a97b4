// Runs schedules. Every node has one runner; a lease for each schedule decides which node runs it.
import { summarizeError } from '../../errors.js'
import { SCHEDULE_TABLE } from '../../store/hooks/leases.js'
import {
  changeScheduleInterval,
  finishSchedule,
  listScheduleStates,
  registerSchedule,
  takeSchedule,
  type ScheduleState,
} from '../../store/hooks/schedules.js'
import type { App } from '../context/app.js'
import { BACKGROUND_POLL_MS, finishOrAbort, LEASE_MS, sleepUnlessStopped } from './background-work.js'
import { SERVICE_PRINCIPAL } from '../context/principal.js'
import { runTask } from './background-task.js'
import { NodeLeases, storeResult } from './node-leases.js'
import { createRecordsHandle } from '../hooks/records-handle.js'
import { checkSchedules, type Schedule } from './schedule.js'

/** Starts to run the schedules. Returns a function that stops them. */
export function startSchedules(app: App, schedules: readonly Schedule[]): () => Promise<void> {
  checkSchedules(schedules)
  if (schedules.length === 0) return async () => undefined
  const runner = new ScheduleRunner(app, schedules)
  runner.start()
  return () => runner.stop()
}

class ScheduleRun {
  /** Aborted after another node has taken the lease. */
  readonly lost = new AbortController()
  ended = Promise.resolve()
  phase: 'taking-lease' | 'running' | 'storing-result' = 'taking-lease'
  /** True after the log has said that the run takes longer than its interval. */
  isReported = false

  constructor(readonly startedMs: number) {}
}

class ScheduleRunner {
  readonly #leases: NodeLeases
  readonly #running = new Map<string, ScheduleRun>()
  readonly #stopping = new AbortController()
  readonly #abort = new AbortController()
  #loop = Promise.resolve()
  #isRegistered = false

  constructor(
    private readonly app: App,
    private readonly schedules: readonly Schedule[],
  ) {
    this.#leases = new NodeLeases(app, SCHEDULE_TABLE)
  }

  start(): void {
    this.#loop = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#loop
    const ended = [...this.#running.values()].map((run) => run.ended)
    await finishOrAbort(ended, this.#abort)
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        if (!this.#isRegistered) await this.#register()
        await this.#renew()
        this.#reportLongRuns()
        await this.#startDue()
      } catch (error) {
        this.app.log.warn(summarizeError(error), 'could not look for due schedules; it will be retried')
      }
      await sleepUnlessStopped(BACKGROUND_POLL_MS, signal)
    }
  }

  /** Only the start of a node changes intervals: during a deployment, nodes with different intervals run side by side. */
  async #register(): Promise<void> {
    const { db, clock } = this.app
    const states = new Map((await listScheduleStates(db.reader)).map((state) => [state.name, state]))
    const changed = this.schedules.filter(
      ({ name, intervalMs }) => states.get(name)?.intervalMs !== intervalMs,
    )
    const nowMs = clock.now()
    if (changed.length > 0)
      await db.transaction(async (tx) => {
        for (const schedule of changed) {
          await registerSchedule(tx, schedule, nowMs)
          await changeScheduleInterval(tx, schedule, nowMs)
        }
      })
    this.#isRegistered = true
  }

  /** A run whose lease was lost goes on beside that of the other node until it looks at its signal. */
  async #renew(): Promise<void> {
    const leased = [...this.#running].filter(([, { phase }]) => phase !== 'taking-lease')
    const renewal = await this.#leases.renew(leased.map(([name]) => name))
    if (!renewal) return
    for (const [name, { phase, lost }] of leased) {
      if (renewal.held.has(name) || phase !== 'running' || lost.signal.aborted) continue
      lost.abort()
      this.app.log.warn(
        { schedule: name },
        'another node runs this schedule, too: this node could not renew its lease in time. The signal of the run is aborted',
      )
    }
  }

  /** A schedule has no time limit, so a run that never ends shows only here. */
  #reportLongRuns(): void {
    const { clock, log } = this.app
    for (const { name, intervalMs } of this.schedules) {
      const run = this.#running.get(name)
      if (!run || run.isReported || clock.now() - run.startedMs <= intervalMs) continue
      run.isReported = true
      log.warn(
        { schedule: name },
        'a run of a schedule takes longer than its interval; the next run begins after its end',
      )
    }
  }

  async #startDue(): Promise<void> {
    const { db, clock } = this.app
    const states = await listScheduleStates(db.reader)
    for (const schedule of this.schedules) {
      const state = states.find(({ name }) => name === schedule.name)
      const isFree = state && (state.lease === null || state.leasedUntilMs <= clock.now())
      if (!isFree || state.nextMs > clock.now() || this.#running.has(schedule.name)) continue
      const run = new ScheduleRun(clock.now())
      this.#running.set(schedule.name, run)
      run.ended = this.#runOnce(schedule, state, run)
        .catch((error: unknown) => {
          this.app.log.warn(
            { schedule: schedule.name, ...summarizeError(error) },
            'could not take the lease of a schedule; it will be retried',
          )
        })
        .finally(() => this.#running.delete(schedule.name))
    }
  }

  async #runOnce(
    schedule: Schedule,
    { nextMs: plannedMs, intervalMs }: ScheduleState,
    run: ScheduleRun,
  ): Promise<void> {
    const { app } = this
    const abort = this.#abort.signal
    const lost = run.lost.signal
    const lease = { table: SCHEDULE_TABLE, name: schedule.name, token: this.#leases.token } as const
    const nowMs = app.clock.now()
    const times = { plannedMs, nowMs, untilMs: nowMs + LEASE_MS }
    if (!(await app.db.transaction((tx) => takeSchedule(tx, lease, times)))) return
    run.phase = 'running'
    const missed = Math.floor((nowMs - plannedMs) / intervalMs)
    const onMs = plannedMs + missed * intervalMs
    const facts = { schedule: schedule.name }
    const call = {
      name: schedule.name,
      records: createRecordsHandle(app, async () => SERVICE_PRINCIPAL),
      log: app.log.child(facts),
      on: new Date(onMs).toISOString(),
      missed,
      signal: AbortSignal.any([this.#stopping.signal, lost]),
    }
    const interrupted = new AbortController()
    const work = async () => {
      try {
        await schedule.run(call)
      } catch (error) {
        if (!call.signal.aborted || error !== call.signal.reason) throw error
        interrupted.abort()
      }
    }
    const outcome = await runTask({ log: app.log, facts }, work, {
      abort: AbortSignal.any([abort, interrupted.signal]),
    })
    // Without a result, the lease expires and another node runs it again.
    if (outcome.kind === 'interrupted') return
    run.phase = 'storing-result'
    const error = outcome.kind === 'failed' ? outcome.error : null
    const result = { nextMs: onMs + intervalMs, lastMs: app.clock.now(), error }
    await storeResult(
      () => app.db.transaction((tx) => finishSchedule(tx, lease, result)),
      AbortSignal.any([abort, lost]),
      (error) => {
        app.log.warn(
          { ...facts, ...summarizeError(error) },
          'could not store the result of a schedule; it will be retried',
        )
      },
    )
  }
}
