import type { Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'

/** During shutdown, a request that is still arriving gets this much time to arrive in full. */
const SHUTDOWN_ARRIVAL_MS = 2_000

/** A client that reads no byte of its response for this long is disconnected. Until then the response occupies memory or disk. */
const CLIENT_STALL_MS = 60_000
/** Number of stall checks within `CLIENT_STALL_MS`. */
const STALL_CHECKS_PER_TIMEOUT = 6

interface ConnectionState {
  /** Number of requests without a finished response. */
  requests: number
  /** Pipelined responses that wait for the connection. Few clients pipeline requests, so the set is created on demand. */
  queued?: Set<ServerResponse>
  /** Bytes read when the last response was finished. If the socket has read more, another request is arriving. */
  bytesRead: number
  /** Closes the connection on a time-out. Set while the client has unread bytes. */
  onStall?: (() => void) | undefined
}

/** Requests that arrived between two calls of `separate`. */
interface RequestCount {
  unanswered: number
  onAnswered?: () => void
}

/**
 * Tracks which connections have requests in flight, because Node's `closeIdleConnections` is not enough for a graceful shutdown:
 * - it treats a response as sent once it is written, and cuts off bytes that are still buffered;
 * - it never closes a connection that has sent no request yet;
 * - it does not close pipelined responses of a lost connection, so listeners of their `close` event would wait for ever.
 */
export class ConnectionTracker {
  readonly #connections = new Map<Socket, ConnectionState>()
  #count: RequestCount = { unanswered: 0 }
  #isDraining = false
  #onDrained: () => void = () => undefined

  readonly #timer: NodeJS.Timeout

  constructor(
    /** Maximum number of connections of each tracked server. */
    private readonly max: number,
    private readonly stallMs = CLIENT_STALL_MS,
  ) {
    this.#timer = setInterval(() => {
      this.#checkStalled()
    }, stallMs / STALL_CHECKS_PER_TIMEOUT).unref()
  }

  track(server: Server): void {
    server.maxConnections = this.max
    server.on('connection', (socket) => {
      if (this.#isDraining) {
        socket.destroy()
        return
      }
      const state: ConnectionState = { requests: 0, bytesRead: 0 }
      this.#connections.set(socket, state)
      socket.once('close', () => {
        this.#connections.delete(socket)
        closeQueuedResponses(state.queued ?? [])
        this.#checkDrained()
      })
    })
    server.on('request', ({ socket }, response) => {
      const state = this.#connections.get(socket)
      if (!state) return
      const count = this.#count
      count.unanswered++
      if (state.requests++ > 0) (state.queued ??= new Set()).add(response)
      response.on('close', () => {
        state.requests--
        if (--count.unanswered === 0) count.onAnswered?.()
        state.queued?.delete(response)
        state.bytesRead = socket.bytesRead
        if (this.#isDraining && state.requests === 0) socket.destroySoon()
      })
    })
  }

  /** Counts later requests apart. Resolves when all earlier ones have been answered. */
  async separate(): Promise<void> {
    const earlier = this.#count
    this.#count = { unanswered: 0 }
    if (earlier.unanswered > 0)
      await new Promise<void>((resolve) => {
        earlier.onAnswered = resolve
      })
  }

  /** Refuses new connections, closes idle ones, and resolves when all requests in flight have been answered. */
  async drain(servers: readonly Server[]): Promise<void> {
    this.#isDraining = true
    // `http.Server.close` would also close idle connections, see above; `net.Server.close` only stops listening.
    for (const server of servers) if (server.listening) NetServer.prototype.close.call(server)
    this.#closeIdle(false)
    const arrivalTimer = setTimeout(() => {
      this.#closeIdle(true)
    }, SHUTDOWN_ARRIVAL_MS)
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve
      this.#checkDrained()
    })
    clearTimeout(arrivalTimer)
    clearInterval(this.#timer)
  }

  /** Sets the socket time-out while bytes are unread; Node restarts it on every read. Between responses Node's keep-alive time-out applies. */
  #checkStalled(): void {
    for (const [socket, state] of this.#connections) {
      const isWaiting = socket.writableLength > 0
      if (isWaiting === (state.onStall !== undefined)) continue
      if (state.onStall) socket.off('timeout', state.onStall)
      state.onStall = isWaiting ? () => socket.destroy() : undefined
      if (state.onStall) socket.setTimeout(this.stallMs, state.onStall)
      else if (state.requests > 0) socket.setTimeout(0)
    }
  }

  #closeIdle(alsoArriving: boolean): void {
    for (const [socket, { requests, bytesRead }] of this.#connections) {
      const isArriving = socket.bytesRead > bytesRead
      if (requests === 0 && (alsoArriving || !isArriving)) socket.destroy()
    }
  }

  #checkDrained(): void {
    if (this.#connections.size === 0) this.#onDrained()
  }
}

/** Closes the pipelined responses that were never assigned the socket. Node itself closes the response that holds the socket. */
function closeQueuedResponses(responses: Iterable<ServerResponse>): void {
  for (const response of [...responses]) {
    if (response.socket !== null) continue
    response.destroy()
    response.emit('close')
  }
}
