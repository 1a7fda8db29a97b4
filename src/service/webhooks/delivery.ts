// Every webhook that is not paused has a courier on each node; which of them calls is decided by a lease.
import { summarizeError } from '../../errors.js'
import { listActiveWebhooks } from '../../store/webhooks/webhooks.js'
import type { App } from '../context/app.js'
import { Courier } from './delivery-worker.js'

const LOOK_MS = 1_000
/** How long a call that is under way may take to its end when the service stops. */
const GRACE_MS = 3_000

/** Answers how to stop. */
export function startDelivery(app: App): () => Promise<void> {
  const stopping = new AbortController()
  const cut = new AbortController()
  const ending = { stopping: stopping.signal, cut: cut.signal }
  const couriers = new Map<number, Promise<void>>()
  const look = async () => {
    for (const id of await listActiveWebhooks(app.db.reader)) {
      if (couriers.has(id) || stopping.signal.aborted) continue
      const courier = new Courier(app, id, ending).run()
      couriers.set(
        id,
        courier.finally(() => couriers.delete(id)),
      )
    }
  }
  let looking: Promise<void> | undefined
  const lookAgain = () => {
    looking ??= look()
      .catch((error: unknown) => {
        app.log.warn(summarizeError(error), 'the webhooks could not be looked for; it is tried again')
      })
      .finally(() => {
        looking = undefined
      })
  }
  lookAgain()
  const timer = setInterval(lookAgain, LOOK_MS)
  timer.unref()
  return async () => {
    clearInterval(timer)
    stopping.abort()
    await looking
    const grace = setTimeout(() => {
      cut.abort()
    }, GRACE_MS)
    await Promise.all(couriers.values())
    clearTimeout(grace)
  }
}
