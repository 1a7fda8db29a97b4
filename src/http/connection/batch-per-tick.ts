import type { IncomingMessage, ServerResponse } from 'node:http'

export type Listener = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Takes up the requests that have arrived in one turn of the event loop together, at its end. What is done for one is then done for the
 * others while the processor has it at hand, and what they read is read at one moment, which is later than the arrival of each.
 */
export function inTurns(listener: Listener, inOneMoment: (work: () => void) => void): Listener {
  let arrived: Parameters<Listener>[] = []
  const takeUp = () => {
    const turn = arrived
    arrived = []
    inOneMoment(() => {
      for (const [request, response] of turn) listener(request, response)
    })
  }
  return (request, response) => {
    if (arrived.push([request, response]) === 1) setImmediate(takeUp)
  }
}
