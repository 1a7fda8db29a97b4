// Holds requests while another handler takes over, so that clients wait instead of losing their connections.
import type { RequestListener, ServerResponse } from 'node:http'

/** A held request that waits longer gets 503. Node itself gives up on a body that nobody reads after 30 seconds. */
const MAX_HOLD_MS = 10_000

type HeldRequest = Parameters<RequestListener>

export class RequestGate {
  #listener: RequestListener
  #held: HeldRequest[] | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(
    listener: RequestListener,
    /** Answers a request that cannot wait longer. */
    private readonly refuse: (response: ServerResponse) => void,
    private readonly maxHoldMs = MAX_HOLD_MS,
  ) {
    this.#listener = listener
  }

  readonly handle: RequestListener = (request, response) => {
    if (this.#held) this.#held.push([request, response])
    else this.#listener(request, response)
  }

  /** Holds the requests that arrive from now on. */
  close(): void {
    this.#held = []
    this.#timer = setTimeout(() => {
      this.open((_, response) => {
        this.refuse(response)
      })
    }, this.maxHoldMs)
  }

  /** Passes the held requests and all later ones to the listener. */
  open(listener: RequestListener): void {
    clearTimeout(this.#timer)
    const held = this.#held ?? []
    this.#held = undefined
    this.#listener = listener
    // A client that has left in the meantime gets no response.
    for (const [request, response] of held) if (!response.destroyed) listener(request, response)
  }
}
