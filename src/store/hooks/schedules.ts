// The state of schedules: when each runs next, and the lease of the node that runs it.
import type { Queryable, Transaction } from '../engine/database.js'
import { SCHEDULE_TABLE, type NamedLease } from './leases.js'

export interface ScheduleState {
  readonly name: string
  readonly intervalMs: number
  /** The time that the next run is planned for. */
  readonly nextMs: number
  readonly lease: string | null
  readonly leasedUntilMs: number
  /** When the last run ended; null before the first one. */
  readonly lastMs: number | null
  /** The error of the last run. */
  readonly error: string | null
}

export async function listScheduleStates(db: Queryable): Promise<ScheduleState[]> {
  const rows = await db.all(
    `select name, interval_ms, next_ms, lease, leased_until_ms, last_ms, error from ${SCHEDULE_TABLE} order by name`,
  )
  return rows.map((row) => ({
    name: String(row['name']),
    intervalMs: Number(row['interval_ms']),
    nextMs: Number(row['next_ms']),
    lease: row['lease'] as string | null,
    leasedUntilMs: Number(row['leased_until_ms'] ?? 0),
    lastMs: row['last_ms'] === null ? null : Number(row['last_ms']),
    error: row['error'] as string | null,
  }))
}

/** Registers a schedule: its first run is one interval later. */
export async function registerSchedule(
  tx: Transaction,
  { name, intervalMs }: Pick<ScheduleState, 'name' | 'intervalMs'>,
  nowMs: number,
): Promise<void> {
  await tx.run(
    `insert into ${SCHEDULE_TABLE} (name, interval_ms, next_ms) values (?, ?, ?) on conflict (name) do nothing`,
    [name, intervalMs, nowMs + intervalMs],
  )
}

/** Changes the interval. The next run is one new interval after the last planned one, or now if that is over. */
export async function changeScheduleInterval(
  tx: Transaction,
  { name, intervalMs }: Pick<ScheduleState, 'name' | 'intervalMs'>,
  nowMs: number,
): Promise<void> {
  const next = 'next_ms - interval_ms + ?'
  await tx.run(
    `update ${SCHEDULE_TABLE} set next_ms = case when ${next} > ? then ${next} else ? end, interval_ms = ? ` +
      `where name = ? and interval_ms <> ?`,
    [intervalMs, nowMs, intervalMs, nowMs, intervalMs, name, intervalMs],
  )
}

/** Takes the lease for a run that is due. Returns false if another node runs it, or has run it. */
export async function takeSchedule(
  tx: Transaction,
  { name, token }: NamedLease,
  { plannedMs, nowMs, untilMs }: { plannedMs: number; nowMs: number; untilMs: number },
): Promise<boolean> {
  const rows = await tx.run(
    `update ${SCHEDULE_TABLE} set lease = ?, leased_until_ms = ? ` +
      `where name = ? and next_ms = ? and (lease is null or leased_until_ms <= ?)`,
    [token, untilMs, name, plannedMs, nowMs],
  )
  return rows === 1
}

/** Stores the result of a run, and releases the lease. Does nothing if another node has taken the lease. */
export async function finishSchedule(
  tx: Transaction,
  { name, token }: NamedLease,
  { nextMs, lastMs, error }: Pick<ScheduleState, 'nextMs' | 'lastMs' | 'error'>,
): Promise<void> {
  await tx.run(
    `update ${SCHEDULE_TABLE} set next_ms = ?, last_ms = ?, error = ?, lease = null where name = ? and lease = ?`,
    [nextMs, lastMs, error, name, token],
  )
}
