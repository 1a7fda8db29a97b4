// The clock of the database, and the newest time that it has given to a Change.
import type { Dialect, Queryable } from '../engine/database.js'
import { LOG_TABLE } from '../sql/log-insert.js'

/** A node whose clock differs more writes a warning. Stored times do not come from it. */
export const MAX_CLOCK_OFFSET_MS = 2_000

/** Milliseconds since 1970, with fractions. */
export async function readClock(db: Queryable, { clock }: Dialect): Promise<number> {
  const [row] = await db.all(`select ${clock.nowMs} as "now"`)
  return Number(row?.['now'])
}

/** The time of the newest Change in milliseconds. Undefined for a new database. */
export async function readNewestTime(db: Queryable, { findColumn }: Dialect): Promise<number | undefined> {
  if ((await db.all(findColumn, [LOG_TABLE, 'at_ms'])).length === 0) return undefined
  const [row] = await db.all(`select at_ms from ${LOG_TABLE} order by seq desc limit 1`)
  return row && Number(row['at_ms'])
}
