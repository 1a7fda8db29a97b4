import type { IncomingMessage, ServerResponse } from 'node:http'

export type HttpListener = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Takes up the requests that have arrived in one turn of the event loop together, at its end. What is done for one is then done for the
 * others while the processor has it at hand, and what they read is read at one moment, which is later than the arrival of each.
 */
export function batchPerTick(listener: HttpListener, withSnapshot: (work: () => void) => void): HttpListener {
  let pending: Parameters<HttpListener>[] = []
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
