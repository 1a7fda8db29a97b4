// Removes old Changes in small transactions with pauses, so that writers do not wait.
import { NECESSARY_TRANSACTION, type Queryable } from '../../store/engine/database.js'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  deleteChanges,
  findFirstSeqSince,
  findLatestTime,
  findRemovableChanges,
  type RetentionLimit,
} from '../../store/log/retention.js'
import type { App } from '../context/app.js'
import { DAY_MS, type Retention } from '../context/settings.js'

/** Small, so that each transaction is short. */
const CHANGES_PER_TRANSACTION = 200
/** The pause after a transaction, as a multiple of its duration. */
const PAUSE_FACTOR = 4
const MIN_PAUSE_MS = 20

type CompactionApp = Pick<App, 'db' | 'clock' | 'settings'>

/** Returns the number of removed Changes. Several nodes may run it concurrently and share the work. */
export async function compactLog(
  { db, clock, settings }: CompactionApp,
  signal: AbortSignal = new AbortController().signal,
  retention: Retention = settings.retention,
): Promise<number> {
  const removable = await findRetentionLimit(db.queryPool, retention, clock.now())
  let removed = 0
  for (let last = 0; removable && !signal.aborted;) {
    const seqs = await findRemovableChanges(db.queryPool, removable, last, CHANGES_PER_TRANSACTION)
    if (seqs.length === 0) break
    last = seqs.at(-1) ?? last
    const since = performance.now()
    removed += await db.transaction((tx) => deleteChanges(tx, db.dialect, seqs), NECESSARY_TRANSACTION)
    const pauseMs = Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (performance.now() - since))
    await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
  return removed
}

/**
 * Undefined if no Change may be removed. Changes of the last day are kept in any case. A removal cannot be undone, so a clock that jumps is not
 * believed at once: time counts only up to two days after the newest Change that is at least a day old.
 */
async function findRetentionLimit(
  db: Queryable,
  retention: Retention,
  nowMs: number,
): Promise<RetentionLimit | undefined> {
  if (retention === 'all') return undefined
  const latestMs = await findLatestTime(db, nowMs - DAY_MS)
  if (latestMs === undefined) return undefined
  const provenMs = Math.min(nowMs, latestMs + 2 * DAY_MS)
  const [days, keptPerRecord] = 'days' in retention ? [retention.days, 1] : [1, retention.versions]
  const beforeMs = provenMs - days * DAY_MS
  const beforeSeq = (await findFirstSeqSince(db, beforeMs)) ?? Number.MAX_SAFE_INTEGER
  return { beforeMs, beforeSeq, keptPerRecord }
}
