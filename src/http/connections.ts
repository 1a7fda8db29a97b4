import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'

/** How long a request that has begun to arrive may take to do so, once the service is stopping. */
const ARRIVAL_MS = 2_000

interface Traffic {
  /** How many requests are under way. */
  requests: number
  /** What had been read when the last one was done with. More than that: another one is arriving. */
  bytesRead: number
}

/**
 * Knows which connections have a request under way. Node's own way of ending idle ones takes an answer for sent as soon as it is
 * written, and cuts off what still waits to leave; and it never ends a connection on which nothing was asked yet.
 */
export class Connections {
  readonly #traffic = new Map<Socket, Traffic>()
  #isEnding = false
  #allDone: () => void = () => undefined

  /** Each server that is watched has at most so many. */
  constructor(private readonly max: number) {}

  watch(server: Server): void {
    server.maxConnections = this.max
    server.on('connection', (socket) => {
      if (this.#isEnding) {
        socket.destroy()
        return
      }
      this.#traffic.set(socket, { requests: 0, bytesRead: 0 })
      socket.once('close', () => {
        this.#traffic.delete(socket)
        this.#checkDone()
      })
    })
    server.on('request', ({ socket }, response) => {
      const traffic = this.#traffic.get(socket)
      if (!traffic) return
      traffic.requests++
      response.on('close', () => {
        traffic.requests--
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
