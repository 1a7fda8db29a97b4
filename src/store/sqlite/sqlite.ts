// Opens the embedded engine: one writing connection with group commit, one reading connection, and long queries in worker processes.
import path from 'node:path'
import type { Database } from '../engine/database.js'
import { followLinks, makeDatabasePrivate, makeFolder } from '../engine/private-files.js'
import { MAX_TIMER_MS } from '../engine/semaphore.js'
import type { OnWriteHealthChange } from '../engine/write-health.js'
import { SqliteSessions } from './connections.js'
import { SqliteDatabase } from './database.js'
import { OpenMarker } from './disk/open-marker.js'
import { startQuickCheck, type QuickCheckLimits, type QuickCheckOutcome } from './disk/quick-check.js'
import { computeBusyDeadline } from './errors.js'
import { SqliteQueryPool } from './query-pool.js'

const DEFAULT_STATEMENT_TIMEOUT_MS = 10_000

export interface SqliteOptions {
  /** The time limit of a query, including its time in the queue. */
  readonly statementTimeoutMs?: number
  /** While queries wait much longer for a query worker, those that cannot run soon are rejected. 0 or undefined rejects none. */
  readonly maxQueueDelayMs?: number | undefined
  /** The size of the file that keeps room for necessary writes on a full disk. 0 keeps none; undefined leaves the file to other processes. */
  readonly diskReserveBytes?: number | undefined
  /** Checks the pages in the background after an unclean stop. */
  readonly quickCheck?: QuickCheckLimits | undefined
  readonly onQuickCheck?: ((outcome: QuickCheckOutcome) => void) | undefined
  /** Called once when the disk has failed. The state in memory and on disk may differ, so the process must restart. */
  readonly onBroken?: (error: unknown) => void
  /** Called when the database starts to reject writes, and when it accepts them again. */
  readonly onWriteHealthChange?: OnWriteHealthChange
  /** Called for each file from which the permissions of other users were removed. */
  readonly onModeNarrowed?: (file: string) => void
}

export async function openSqlite(
  location: string,
  options: SqliteOptions = {},
  onClosed?: () => void,
): Promise<Database> {
  const file = followLinks(location)
  makeFolder(path.resolve(path.dirname(file)))
  const marker = await OpenMarker.check(file)
  return marker.closeOnError(async () => {
    makeDatabasePrivate(file, options.onModeNarrowed)
    const onWriteHealthChange: OnWriteHealthChange = (unwritable, error) => {
      options.onWriteHealthChange?.(unwritable, error)
      if (unwritable?.kind === 'failed') options.onBroken?.(error)
    }
    const sessions = await SqliteSessions.open(file, {
      deadline: computeBusyDeadline(),
      diskReserveBytes: options.diskReserveBytes,
      marker,
      onWriteHealthChange,
      onReopened: () => {
        queryPool.restart()
      },
      createCheckpointWorker: () =>
        new SqliteQueryPool(path.resolve(file), { timeoutMs: MAX_TIMER_MS, mode: 'write' }),
    })
    const onReadError = (error: unknown) => {
      sessions.reportDamage(error)
    }
    const queryPool = new SqliteQueryPool(path.resolve(file), {
      timeoutMs: options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS,
      maxDelayMs: options.maxQueueDelayMs,
      onError: onReadError,
    })
    if (marker.isUnclean && options.quickCheck && options.quickCheck.timeMs > 0) {
      const checkOptions = { timeoutMs: options.quickCheck.timeMs, onError: onReadError }
      const checker = new SqliteQueryPool(path.resolve(file), checkOptions)
      sessions.quickCheck = startQuickCheck(file, checker, options.quickCheck, (outcome) => {
        if (outcome.kind === 'damaged') sessions.writeHealth.report('damaged', outcome.error)
        options.onQuickCheck?.(outcome)
      })
    }
    return new SqliteDatabase(file, sessions, queryPool, onClosed)
  })
}
