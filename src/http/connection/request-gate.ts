// Holds requests while another handler takes over, so that clients wait instead of losing their connections.
import type { RequestListener, Server, ServerResponse } from 'node:http'

/** A held request that waits longer gets 503. Node itself gives up on a body that nobody reads after 30 seconds. */
const MAX_HOLD_MS = 10_000

/** Passes the requests of its servers to one listener. It replaces their listeners, so that an open gate costs nothing. */
export class RequestGate {
  readonly #servers: Server[] = []
  #held: Parameters<RequestListener>[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(
    private listener: RequestListener,
    /** Answers a request that cannot wait longer. */
    private readonly refuse: (response: ServerResponse) => void,
    private readonly maxHoldMs = MAX_HOLD_MS,
  ) {}

  add(server: Server): void {
    server.on('request', this.listener)
    this.#servers.push(server)
  }

  /** Holds the requests that arrive from now on. */
  close(): void {
    this.#use((request, response) => {
      this.#held.push([request, response])
    })
    this.#timer = setTimeout(() => {
      this.open((_, response) => {
        this.refuse(response)
      })
    }, this.maxHoldMs)
  }

  /** Passes the held requests and all later ones to the listener. */
  open(listener: RequestListener): void {
    clearTimeout(this.#timer)
    this.#use(listener)
    const held = this.#held
    this.#held = []
    // A client that has left in the meantime gets no response.
    for (const [request, response] of held) if (!response.destroyed) listener(request, response)
  }

  #use(listener: RequestListener): void {
    for (const server of this.#servers) server.off('request', this.listener).on('request', listener)
    this.listener = listener
  }
}
