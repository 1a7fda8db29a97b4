import { NECESSARY_TRANSACTION } from '../../store/engine/database.js'
import { summarizeError, VersoError } from '../../errors.js'
import { deleteOldDeliveries } from '../../store/webhooks/deliveries.js'
import { deleteResponsesBefore } from '../../store/records/idempotency.js'
import { deleteLoginFailuresBefore } from '../../store/auth/login-failures.js'
import { deleteExpiredResetLinks } from '../../store/auth/reset-links.js'
import { deleteExpiredSessions } from '../../store/auth/sessions.js'
import type { App } from '../context/app.js'
import { DAY_MS } from '../context/settings.js'
import { compactLog } from './retention.js'
import { IDEMPOTENCY_TTL_MS } from '../write/transaction.js'
import { FAILURE_WINDOW_MS } from '../auth/throttle.js'

const HOUSEKEEPING_FAILED = 'housekeeping failed; it will be retried'
const EXPIRY_INTERVAL_MS = 5 * 60_000
const DELIVERY_RETENTION_MS = 30 * DAY_MS
const MAX_DELIVERIES_PER_WEBHOOK = 1_000

type HousekeepingApp = Pick<App, 'db' | 'clock' | 'settings' | 'log'>

/** Longer than the other interval, because the search for removable Changes is expensive. */
const COMPACT_INTERVAL_MS = 60 * 60_000

/** Removes expired data periodically. Returns a function that stops it. */
export function startHousekeeping(app: HousekeepingApp): () => Promise<void> {
  const stopping = new AbortController()
  const stops = [
    runEvery(app, EXPIRY_INTERVAL_MS, () => removeExpired(app)),
    runEvery(app, COMPACT_INTERVAL_MS, async () => {
      const removed = await compactLog(app, stopping.signal)
      if (removed > 0) app.log.info({ removed }, 'removed old changes from the change log')
    }),
  ]
  return async () => {
    stopping.abort()
    for (const stop of stops) await stop()
  }
}

function runEvery(
  { log }: HousekeepingApp,
  intervalMs: number,
  run: () => Promise<void>,
): () => Promise<void> {
  let running = Promise.resolve()
  const timer = setInterval(() => {
    running = running.then(run).catch((error: unknown) => {
      // A VersoError is an operational problem, such as a full disk; anything else is a defect.
      if (error instanceof VersoError) log.warn(summarizeError(error), HOUSEKEEPING_FAILED)
      else log.error({ err: error }, HOUSEKEEPING_FAILED)
    })
  }, intervalMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}

export async function removeExpired({ db, clock, settings }: HousekeepingApp): Promise<void> {
  const now = clock.now()
  await db.transaction(async (tx) => {
    await deleteExpiredSessions(tx, now - settings.sessionIdleTimeoutMs, now - settings.sessionMaxAgeMs)
    await deleteResponsesBefore(tx, now - IDEMPOTENCY_TTL_MS)
    await deleteLoginFailuresBefore(tx, now - FAILURE_WINDOW_MS)
    await deleteExpiredResetLinks(tx, now)
    await deleteOldDeliveries(tx, now - DELIVERY_RETENTION_MS, MAX_DELIVERIES_PER_WEBHOOK)
  }, NECESSARY_TRANSACTION)
  await db.blobs.recover()
}
