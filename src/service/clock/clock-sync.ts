// Keeps the clock of a node equal to that of the database, so that all nodes agree: reads it at start and from time to time, and warns if
// the clock of the machine or that of the database is wrong.
import type { Logger } from 'pino'
import type { Database } from '../../store/engine/database.js'
import { MAX_CLOCK_OFFSET_MS, readClock, readNewestTime } from '../../store/log/clock.js'
import type { ReadinessReport } from '../context/readiness.js'
import { computeError, SteadyClock, type ClockReading } from './steady-clock.js'

const TICK_MS = 1_000
/** The clock of the database is read this often, and at once if the clock of the machine was set. */
const TICKS_PER_READING = 10
const MAX_FIRST_READINGS = 5
/** A first reading this exact needs no other one. */
const EXACT_MS = 1
/** The clock of the machine was set if it differs this much from the monotonic clock since the last tick. */
const SET_MS = 500

type ClockDatabase = Pick<Database, 'reader' | 'dialect'>

/** Another clock than that of the machine, for tests of this class. */
export interface MachineClock {
  /** The time of day. */
  readonly now: () => number
  /** The monotonic clock. */
  readonly elapsed: () => number
}

const MACHINE: MachineClock = { now: () => Date.now(), elapsed: performance.now.bind(performance) }

/** Returns a clock that has read the clock of the database once, for work that takes minutes. */
export async function readSteadyClock(db: ClockDatabase, machine = MACHINE): Promise<SteadyClock> {
  const first = await readExactly(db, machine)
  const floorMs = (await readNewestTime(db.reader, db.dialect)) ?? -Infinity
  const { maxLeadMs } = db.dialect.clock
  return new SteadyClock(first, { floorMs, maxLeadMs, elapsed: machine.elapsed })
}

export class ClockSync {
  readonly clock: SteadyClock
  readonly #warnings: readonly ClockWarning[]
  readonly #timer: NodeJS.Timeout
  /** The time of day minus the monotonic time, at the last tick. */
  #machineOffsetMs: number
  #ticks = 0
  #reading: Promise<void> | undefined

  /** Reads the clock of the database and the time of the newest Change. */
  static async start(db: ClockDatabase, log: Logger, machine = MACHINE): Promise<ClockSync> {
    const first = await readExactly(db, machine)
    return new ClockSync(db, {
      log,
      machine,
      first,
      newestMs: await readNewestTime(db.reader, db.dialect),
    })
  }

  private constructor(
    private readonly db: ClockDatabase,
    private readonly options: {
      readonly log: Logger
      readonly machine: MachineClock
      readonly first: ClockReading
      readonly newestMs: number | undefined
    },
  ) {
    const { machine, first, newestMs = -Infinity } = options
    const { maxLeadMs } = db.dialect.clock
    this.clock = new SteadyClock(first, { floorMs: newestMs, maxLeadMs, elapsed: machine.elapsed })
    this.#machineOffsetMs = machine.now() - machine.elapsed()
    this.#warnings = [
      new ClockWarning(options.log, {
        measure: () => machine.now() - this.clock.referenceMs,
        describe: describeMachineOffset,
        resolved: 'the clock of this machine and that of the database agree again',
      }),
      new ClockWarning(options.log, {
        measure: () =>
          Math.max(0, newestMs - this.clock.referenceMs, this.clock.now() - this.clock.referenceMs),
        describe: describeDatabaseOffset,
        resolved: 'the clock of the database has reached the newest stored time',
      }),
    ]
    this.#check()
    this.#timer = setInterval(() => void this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  report(): ReadinessReport {
    return { warnings: this.#warnings.flatMap(({ text }) => text ?? []) }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#reading
  }

  async #tick(): Promise<void> {
    const { machine } = this.options
    const offsetMs = machine.now() - machine.elapsed()
    const wasSet = Math.abs(offsetMs - this.#machineOffsetMs) > SET_MS
    this.#machineOffsetMs = offsetMs
    this.#ticks++
    // A machine that slept looks like one whose clock was set, because its monotonic clock stops during sleep.
    if (wasSet || this.#ticks % TICKS_PER_READING === 0) await (this.#reading ??= this.#read())
    this.#check()
  }

  async #read(): Promise<void> {
    try {
      this.clock.update(await readOnce(this.db, this.options.machine))
    } catch {
      // The monotonic clock goes on. Requests report that the database does not answer.
    }
    this.#reading = undefined
  }

  #check(): void {
    for (const warning of this.#warnings) warning.check()
  }
}

interface ClockWarningOptions {
  /** Milliseconds by which a clock is wrong. */
  readonly measure: () => number
  readonly describe: (offsetMs: number) => string
  readonly resolved: string
}

/** Logs when a clock becomes wrong and when it is right again. */
class ClockWarning {
  /** Undefined while the clock is right. */
  text: string | undefined

  constructor(
    private readonly log: Logger,
    private readonly options: ClockWarningOptions,
  ) {}

  check(): void {
    const { measure, describe, resolved } = this.options
    const offsetMs = Math.round(measure())
    const wasWrong = this.text !== undefined
    this.text = Math.abs(offsetMs) > MAX_CLOCK_OFFSET_MS ? describe(offsetMs) : undefined
    if (this.text !== undefined && !wasWrong) this.log.warn({ offsetMs }, this.text)
    if (this.text === undefined && wasWrong) this.log.info({ offsetMs }, resolved)
  }
}

function describeMachineOffset(offsetMs: number): string {
  const direction = offsetMs > 0 ? 'ahead of' : 'behind'
  return `The clock of this machine is ${formatSeconds(offsetMs)} ${direction} the clock of the database. Set it, for example by NTP. Stored times are right: they come from the database`
}

function describeDatabaseOffset(offsetMs: number): string {
  return `The clock of the database is ${formatSeconds(offsetMs)} behind the newest stored time. Check the clock of its machine. No change is hidden or removed by this`
}

function formatSeconds(ms: number): string {
  return `${Math.round(Math.abs(ms) / 1_000)} s`
}

/** The first reading may include the time to connect, so it may be repeated. */
async function readExactly(db: ClockDatabase, machine: MachineClock): Promise<ClockReading> {
  let best = await readOnce(db, machine)
  for (let readings = 1; readings < MAX_FIRST_READINGS && computeError(best) > EXACT_MS; readings++) {
    const reading = await readOnce(db, machine)
    if (computeError(reading) < computeError(best)) best = reading
  }
  return best
}

async function readOnce({ reader, dialect }: ClockDatabase, machine: MachineClock): Promise<ClockReading> {
  const sentAtMs = machine.elapsed()
  const referenceMs = await readClock(reader, dialect)
  return { referenceMs, sentAtMs, receivedAtMs: machine.elapsed() }
}
