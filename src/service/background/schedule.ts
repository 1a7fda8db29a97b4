// Schedules: work of the application that one node runs at an interval.
import type { Logger } from 'pino'
import { ConfigError } from '../../errors.js'
import type { RecordsHandle } from '../../model/definition/typed-records.js'

/** The argument of a schedule. */
export interface ScheduleCall {
  readonly name: string
  /** Reads and writes with all permissions. */
  readonly records: RecordsHandle
  readonly log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
  /** The time that this run was planned for. */
  readonly on: string
  /** How many earlier runs did not take place, because no node ran or a run took too long. This run makes up for them. */
  readonly missed: number
  /** Aborts when the service stops, and when another node runs the schedule because this one could not reach the database for long. */
  readonly signal: AbortSignal
}

export type ScheduledWork = (call: ScheduleCall) => unknown

export interface Schedule {
  readonly name: string
  readonly intervalMs: number
  readonly run: ScheduledWork
}

// A registered symbol is the same in every copy of this module that a file may load.
const SCHEDULE_MARKER = Symbol.for('verso.schedule')

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const MAX_INTERVAL_MS = 365 * 86_400_000
const NAME_PATTERN = /^[\w-]{1,100}$/

/**
 * Runs work at an interval: a whole number with `s`, `m`, `h` or `d`. One node runs it at a time. The first run is one interval after the
 * service first knows the schedule. The service remembers by name when it has run; runs that were missed are made up once.
 *
 * @example
 * every('1h', 'close-old-tasks', async ({ records, log }) => {
 *   const { data } = await records.of(Task).find({ filter: { state: 'waiting' }, fields: ['version'] })
 *   for (const { id, version } of data) await records.of(Task).update(id, { version, state: 'closed' })
 *   log.info({ closed: data.length }, 'closed old tasks')
 * })
 */
export function every(interval: string, name: string, run: ScheduledWork): Schedule {
  const heading = 'A schedule is invalid'
  if (typeof run !== 'function')
    throw new ConfigError(heading, [
      `every takes an interval, a name and a function: every('1h', 'name', async (call) => …)`,
    ])
  if (typeof name !== 'string' || !NAME_PATTERN.test(name))
    throw new ConfigError(heading, [
      `the name ${JSON.stringify(name)} must have 1 to 100 letters, digits, _ or -`,
    ])
  const intervalMs = parseInterval(interval)
  if (intervalMs === undefined)
    throw new ConfigError(heading, [
      `${name}: the interval ${JSON.stringify(interval)} must be a whole number with s, m, h or d, from 1s to 365d, such as 15m`,
    ])
  return createScheduleOfService(name, intervalMs, run)
}

/** Accepts names and intervals that schedules of the application cannot have. */
export function createScheduleOfService(name: string, intervalMs: number, run: ScheduledWork): Schedule {
  const schedule: Schedule = { name, intervalMs, run }
  Object.defineProperty(schedule, SCHEDULE_MARKER, { value: true })
  return Object.freeze(schedule)
}

export function isSchedule(value: unknown): value is Schedule {
  return typeof value === 'object' && value !== null && SCHEDULE_MARKER in value
}

/** Throws if a value is not a schedule, or if two have the same name. */
export function checkSchedules(schedules: readonly unknown[]): void {
  const errors: string[] = []
  const names = new Set<string>()
  for (const [index, schedule] of schedules.entries()) {
    if (!isSchedule(schedule))
      errors.push(`schedules[${index}] is not a schedule: write every('1h', 'name', …)`)
    else if (names.has(schedule.name))
      errors.push(`there are two schedules with the name "${schedule.name}": give one of them another name`)
    else names.add(schedule.name)
  }
  if (errors.length > 0) throw new ConfigError('The schedules are invalid', errors)
}

function parseInterval(interval: unknown): number | undefined {
  const [, digits, unit = ''] = (typeof interval === 'string' && /^(\d{1,9})([smhd])$/.exec(interval)) || []
  const ms = Number(digits) * (UNITS_MS[unit] ?? NaN)
  return ms >= 1_000 && ms <= MAX_INTERVAL_MS ? ms : undefined
}

/** Formats an interval as `every` takes it, in the largest unit that divides it. */
export function formatInterval(ms: number): string {
  const [unit, unitMs] = Object.entries(UNITS_MS).findLast(([, each]) => ms % each === 0) ?? ['ms', 1]
  return `${ms / unitMs}${unit}`
}
