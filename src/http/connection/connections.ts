import type { Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'

/** How long a request that has begun to arrive may take to do so, once the service is stopping. */
const ARRIVAL_MS = 2_000

/** The service cuts off a client that takes no byte of an answer for so long. Until then the answer waits in memory or on the disk. */
const STALL_MS = 60_000
/** Checks within that time. */
const LOOKS = 6

interface Traffic {
  /** How many requests have no answer yet. */
  requests: number
  /** Responses that came while another one had the connection. Few clients send requests that way, so most connections have none. */
  queued?: Set<ServerResponse>
  /** What had been read when the last one was done with. More than that: another one is arriving. */
  bytesRead: number
  /** Ends the connection; set while bytes wait to be taken. */
  cutOff?: (() => void) | undefined
}

/**
 * Knows which connections have a request under way. Node's own way of ending idle ones takes an answer for sent as soon as it is
 * written, and cuts off what still waits to leave; and it never ends a connection on which nothing was asked yet. Nor does it close a
 * response that waits behind others when its connection is gone: whoever counts on `close` would wait for ever.
 */
export class Connections {
  readonly #traffic = new Map<Socket, Traffic>()
  #isEnding = false
  #allDone: () => void = () => undefined

  readonly #timer: NodeJS.Timeout

  constructor(
    /** Each server that is watched has at most so many. */
    private readonly max: number,
    private readonly stallMs = STALL_MS,
  ) {
    this.#timer = setInterval(() => {
      this.#watchStalled()
    }, stallMs / LOOKS).unref()
  }

  watch(server: Server): void {
    server.maxConnections = this.max
    server.on('connection', (socket) => {
      if (this.#isEnding) {
        socket.destroy()
        return
      }
      const traffic: Traffic = { requests: 0, bytesRead: 0 }
      this.#traffic.set(socket, traffic)
      socket.once('close', () => {
        this.#traffic.delete(socket)
        closeQueued(traffic.queued ?? [])
        this.#checkDone()
      })
    })
    server.on('request', ({ socket }, response) => {
      const traffic = this.#traffic.get(socket)
      if (!traffic) return
      if (traffic.requests++ > 0) (traffic.queued ??= new Set()).add(response)
      response.on('close', () => {
        traffic.requests--
        traffic.queued?.delete(response)
        traffic.bytesRead = socket.bytesRead
        if (this.#isEnding && traffic.requests === 0) socket.destroySoon()
      })
    })
  }

  /** Takes no new connections, ends those that wait for nothing, and answers when the others have had their answers. */
  async end(servers: readonly Server[]): Promise<void> {
    this.#isEnding = true
    // Not the `close` of HTTP, which would end connections in its own way.
    for (const server of servers) if (server.listening) NetServer.prototype.close.call(server)
    this.#endIdle(false)
    const late = setTimeout(() => {
      this.#endIdle(true)
    }, ARRIVAL_MS)
    await new Promise<void>((resolve) => {
      this.#allDone = resolve
      this.#checkDone()
    })
    clearTimeout(late)
    clearInterval(this.#timer)
  }

  /** Node notices itself whether any byte was taken. Between answers its own time-out is in force, which stays. */
  #watchStalled(): void {
    for (const [socket, traffic] of this.#traffic) {
      const isWaiting = socket.writableLength > 0
      if (isWaiting === (traffic.cutOff !== undefined)) continue
      if (traffic.cutOff) socket.off('timeout', traffic.cutOff)
      traffic.cutOff = isWaiting ? () => socket.destroy() : undefined
      if (traffic.cutOff) socket.setTimeout(this.stallMs, traffic.cutOff)
      else if (traffic.requests > 0) socket.setTimeout(0)
    }
  }

  #endIdle(alsoArriving: boolean): void {
    for (const [socket, { requests, bytesRead }] of this.#traffic) {
      const isArriving = socket.bytesRead > bytesRead
      if (requests === 0 && (alsoArriving || !isArriving)) socket.destroy()
    }
  }

  #checkDone(): void {
    if (this.#traffic.size === 0) this.#allDone()
  }
}

/** Closes responses that never got the connection. Node closes the one that has it. */
function closeQueued(responses: Iterable<ServerResponse>): void {
  for (const response of [...responses]) {
    if (response.socket !== null) continue
    response.destroy()
    response.emit('close')
  }
}
