import type { RequestListener } from 'node:http'

/**
 * Collects the requests that arrive in one turn of the event loop and handles them at its end, inside one snapshot. The batch shares warm
 * processor caches. The snapshot begins after every request of the batch has arrived, so none of them reads stale data.
 */
export function batchPerTick(
  listener: RequestListener,
  withSnapshot: (work: () => void) => void,
): RequestListener {
  let pending: Parameters<RequestListener>[] = []
  const runBatch = () => {
    const batch = pending
    pending = []
    withSnapshot(() => {
      for (const [request, response] of batch) listener(request, response)
    })
  }
  return (request, response) => {
    if (pending.push([request, response]) === 1) setImmediate(runBatch)
  }
}
