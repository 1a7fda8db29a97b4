import { summarizeError, VersoError } from '../../errors.js'
import { deleteOldDeliveries } from '../../store/webhooks/deliveries.js'
import { deleteResponsesBefore } from '../../store/records/idempotency.js'
import { deleteLoginFailuresBefore } from '../../store/auth/login-failures.js'
import { deleteExpiredResetLinks } from '../../store/auth/reset-links.js'
import { deleteExpiredSessions } from '../../store/auth/sessions.js'
import type { App } from '../context/app.js'
import { compact } from './retention.js'
import { IDEMPOTENCY_KEPT_MS } from '../write/transaction.js'
import { FAILURE_WINDOW_MS } from '../auth/throttle.js'

const HOUSEKEEPING_FAILED = 'housekeeping failed; it is tried again later'
const EVERY_MS = 5 * 60_000
const DELIVERIES_KEPT_MS = 30 * 24 * 60 * 60_000
/** Of each webhook. */
const DELIVERIES_KEPT = 1_000

type Kept = Pick<App, 'db' | 'clock' | 'settings' | 'log'>

/** Looking for what may go takes longer than the rest. */
const COMPACT_EVERY_MS = 60 * 60_000

/** Removes what has expired, now and then; answers how to stop. */
export function startHousekeeping(app: Kept): () => Promise<void> {
  const stopping = new AbortController()
  const stops = [
    every(app, EVERY_MS, () => tidy(app)),
    every(app, COMPACT_EVERY_MS, async () => {
      const removed = await compact(app, stopping.signal)
      if (removed > 0) app.log.info({ removed }, 'the Log was compacted')
    }),
  ]
  return async () => {
    stopping.abort()
    for (const stop of stops) await stop()
  }
}

function every({ log }: Kept, ms: number, work: () => Promise<void>): () => Promise<void> {
  let running = Promise.resolve()
  const timer = setInterval(() => {
    running = running.then(work).catch((error: unknown) => {
      // A refusal is no defect: the disk is full, or the database takes no writes.
      if (error instanceof VersoError) log.warn(summarizeError(error), HOUSEKEEPING_FAILED)
      else log.error({ err: error }, HOUSEKEEPING_FAILED)
    })
  }, ms)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}

export async function tidy({ db, clock, settings }: Kept): Promise<void> {
  const now = clock.now()
  await db.transaction(async (tx) => {
    await deleteExpiredSessions(tx, now - settings.sessionIdleMs, now - settings.sessionMaxMs)
    await deleteResponsesBefore(tx, now - IDEMPOTENCY_KEPT_MS)
    await deleteLoginFailuresBefore(tx, now - FAILURE_WINDOW_MS)
    await deleteExpiredResetLinks(tx, now)
    await deleteOldDeliveries(tx, now - DELIVERIES_KEPT_MS, DELIVERIES_KEPT)
  })
  await db.blobs.recover()
}
