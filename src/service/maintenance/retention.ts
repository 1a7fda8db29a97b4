// Removes old Changes in small transactions with pauses, so that writers do not wait.
import { setTimeout as sleep } from 'node:timers/promises'
import { findRemovableChanges, deleteChanges, type RetentionLimit } from '../../store/log/retention.js'
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
  const removable = computeRemovable(retention, clock.now())
  let removed = 0
  for (let last = 0; removable && !signal.aborted;) {
    const seqs = await findRemovableChanges(db.queryPool, removable, last, CHANGES_PER_TRANSACTION)
    if (seqs.length === 0) break
    last = seqs.at(-1) ?? last
    const since = performance.now()
    removed += await db.transaction((tx) => deleteChanges(tx, db.dialect, seqs))
    const pauseMs = Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (performance.now() - since))
    await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
  return removed
}

/** Undefined if all Changes are kept. Changes of the last day are kept in any case. */
function computeRemovable(retention: Retention, nowMs: number): RetentionLimit | undefined {
  if (retention === 'all') return undefined
  if ('days' in retention) return { beforeMs: nowMs - retention.days * DAY_MS, keptPerRecord: 1 }
  return { beforeMs: nowMs - DAY_MS, keptPerRecord: retention.versions }
}
