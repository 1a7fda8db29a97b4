// Which moment of the past is meant.
import { VersoError } from '../../errors.js'
import { TIMESTAMP_RULE, parseTimestamp } from '../../model/values/date-time.js'
import { isVersion } from '../../model/values/value.js'
import type { Queryable } from '../../store/engine/database.js'
import { readRetentionFloor, findSeqAt } from '../../store/log/feed.js'

export type TimelinePoint = { readonly version: number } | { readonly atMs: number }

/** Digits alone are a version, all else is a time; a date is its beginning in UTC. */
export function parseTimelinePoint(input: unknown): TimelinePoint {
  if (isVersion(input)) return { version: input }
  if (typeof input === 'string' && /^\d{1,16}$/.test(input) && isVersion(Number(input)))
    return { version: Number(input) }
  return parseTimelineTime(input, `a version, ${TIMESTAMP_RULE}, or a date`)
}

/** The same for several records, which have no version in common. */
export function parseTimelineTime(
  input: unknown,
  expected = `${TIMESTAMP_RULE}, or a date`,
): { readonly atMs: number } {
  const at = parseTimestamp(input)
  if (at === undefined) throw new VersoError('bad-request', `asOf must be ${expected}`)
  return { atMs: Date.parse(at) }
}

/** The number of the last Change that had been made at this moment; refuses where the Log no longer tells what came after it. */
export async function resolveSeqAt(db: Queryable, { atMs }: { readonly atMs: number }): Promise<number> {
  const seq = await findSeqAt(db, atMs)
  await refuseBelowRetentionFloor(db, seq)
  return seq
}

/** Asked again once everything is read: what was taken out meanwhile was not seen. */
export async function refuseBelowRetentionFloor(db: Queryable, seq: number): Promise<void> {
  if (seq < (await readRetentionFloor(db)))
    throw new VersoError('gone', 'The past is no longer kept up to this moment')
}
