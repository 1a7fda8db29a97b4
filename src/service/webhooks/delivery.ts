// Runs a delivery worker for each active webhook. Every node has one; a lease decides which of them calls.
import { summarizeError } from '../../errors.js'
import { listActiveWebhooks } from '../../store/webhooks/webhooks.js'
import type { App } from '../context/app.js'
import { BACKGROUND_POLL_MS, finishOrAbort } from '../background/background-work.js'
import { DeliveryWorker } from './delivery-worker.js'

/** Returns a function that stops the workers. */
export function startDeliveryWorkers(app: App): () => Promise<void> {
  const stopping = new AbortController()
  const abort = new AbortController()
  const shutdown = { stopping: stopping.signal, abort: abort.signal }
  const workers = new Map<number, Promise<void>>()
  const startNewWorkers = async () => {
    for (const id of await listActiveWebhooks(app.db.reader)) {
      if (workers.has(id) || stopping.signal.aborted) continue
      const worker = new DeliveryWorker(app, id, shutdown).run()
      workers.set(
        id,
        worker.finally(() => workers.delete(id)),
      )
    }
  }
  let starting: Promise<void> | undefined
  const poll = () => {
    starting ??= startNewWorkers()
      .catch((error: unknown) => {
        app.log.warn(summarizeError(error), 'could not read the list of webhooks; it will be retried')
      })
      .finally(() => {
        starting = undefined
      })
  }
  poll()
  const timer = setInterval(poll, BACKGROUND_POLL_MS)
  timer.unref()
  return async () => {
    clearInterval(timer)
    stopping.abort()
    await starting
    await finishOrAbort(workers.values(), abort)
  }
}
