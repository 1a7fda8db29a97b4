// Parses `asOf` and resolves it to a sequence number of the Log.
import { VersoError } from '../../errors.js'
import { TIMESTAMP_RULE, parseTimestamp } from '../../model/values/date-time.js'
import { isVersion } from '../../model/values/value.js'
import type { Queryable } from '../../store/engine/database.js'
import { readRetentionFloor, findSeqAt } from '../../store/log/feed.js'

export type TimelinePoint = { readonly version: number } | { readonly atMs: number }

/** Digits are a version, any other text is a time. A date means its start in UTC. */
export function parseTimelinePoint(input: unknown): TimelinePoint {
  if (isVersion(input)) return { version: input }
  if (typeof input === 'string' && /^\d{1,16}$/.test(input) && isVersion(Number(input)))
    return { version: Number(input) }
  return parseTimelineTime(input, `a version, ${TIMESTAMP_RULE}, or a date`)
}

/** Parses a time only: several records have no common version. */
export function parseTimelineTime(
  input: unknown,
  expected = `${TIMESTAMP_RULE}, or a date`,
): { readonly atMs: number } {
  const at = parseTimestamp(input)
  if (at === undefined) throw new VersoError('bad-request', `asOf must be ${expected}`)
  return { atMs: Date.parse(at) }
}

/** Returns the sequence number of the last Change at this time. Fails if later Changes were removed from the Log. */
export async function resolveSeqAt(db: Queryable, { atMs }: { readonly atMs: number }): Promise<number> {
  const seq = await findSeqAt(db, atMs)
  await refuseBelowRetentionFloor(db, seq)
  return seq
}

/** Call it again after reading: a purge in between may have removed Changes that the read needed. */
export async function refuseBelowRetentionFloor(db: Queryable, seq: number): Promise<void> {
  if (seq < (await readRetentionFloor(db)))
    throw new VersoError('gone', 'The change log no longer reaches back to this time')
}
