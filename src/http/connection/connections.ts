import type { Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'

/** How long a request that has begun to arrive may take to do so, once the service is stopping. */
const SHUTDOWN_ARRIVAL_MS = 2_000

/** The service cuts off a client that takes no byte of an answer for so long. Until then the answer waits in memory or on the disk. */
const CLIENT_STALL_MS = 60_000
/** Checks within that time. */
const STALL_CHECKS_PER_TIMEOUT = 6

interface ConnectionState {
  /** How many requests have no answer yet. */
  requests: number
  /** Responses that came while another one had the connection. Few clients send requests that way, so most connections have none. */
  queued?: Set<ServerResponse>
  /** What had been read when the last one was done with. More than that: another one is arriving. */
  bytesRead: number
  /** Ends the connection; set while bytes wait to be taken. */
  onStall?: (() => void) | undefined
}

/**
 * Knows which connections have a request under way. Node's own way of ending idle ones takes an answer for sent as soon as it is
 * written, and cuts off what still waits to leave; and it never ends a connection on which nothing was asked yet. Nor does it close a
 * response that waits behind others when its connection is gone: whoever counts on `close` would wait for ever.
 */
export class ConnectionTracker {
  readonly #connections = new Map<Socket, ConnectionState>()
  #isDraining = false
  #onDrained: () => void = () => undefined

  readonly #timer: NodeJS.Timeout

  constructor(
    /** Each server that is watched has at most so many. */
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
      const traffic: ConnectionState = { requests: 0, bytesRead: 0 }
      this.#connections.set(socket, traffic)
      socket.once('close', () => {
        this.#connections.delete(socket)
        closeQueuedResponses(traffic.queued ?? [])
        this.#checkDrained()
      })
    })
    server.on('request', ({ socket }, response) => {
      const traffic = this.#connections.get(socket)
      if (!traffic) return
      if (traffic.requests++ > 0) (traffic.queued ??= new Set()).add(response)
      response.on('close', () => {
        traffic.requests--
        traffic.queued?.delete(response)
        traffic.bytesRead = socket.bytesRead
        if (this.#isDraining && traffic.requests === 0) socket.destroySoon()
      })
    })
  }

  /** Takes no new connections, ends those that wait for nothing, and answers when the others have had their answers. */
  async drain(servers: readonly Server[]): Promise<void> {
    this.#isDraining = true
    // Not the `close` of HTTP, which would end connections in its own way.
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

  /** Node notices itself whether any byte was taken. Between answers its own time-out is in force, which stays. */
  #checkStalled(): void {
    for (const [socket, traffic] of this.#connections) {
      const isWaiting = socket.writableLength > 0
      if (isWaiting === (traffic.onStall !== undefined)) continue
      if (traffic.onStall) socket.off('timeout', traffic.onStall)
      traffic.onStall = isWaiting ? () => socket.destroy() : undefined
      if (traffic.onStall) socket.setTimeout(this.stallMs, traffic.onStall)
      else if (traffic.requests > 0) socket.setTimeout(0)
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

/** Closes responses that never got the connection. Node closes the one that has it. */
function closeQueuedResponses(responses: Iterable<ServerResponse>): void {
  for (const response of [...responses]) {
    if (response.socket !== null) continue
    response.destroy()
    response.emit('close')
  }
}
