// A proxy between the service and its database that can cut connections, hold their bytes, and lead new ones to another server.
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const CHOKE_MS = 200

export interface Proxy {
  readonly url: string
  /** Resets every open connection; new ones are served. */
  cut(): void
  /** Stops reading while the other side is still sending, then closes the connections. */
  choke(): Promise<void>
  /** Holds all bytes in both directions, also those of new connections. */
  hold(): void
  /** Delivers what was held. The server does not learn that the service closed connections meanwhile. */
  deliver(): void
  /** Leads new connections to another server. Open ones stay. */
  moveTo(databaseUrl: string): void
  close(): Promise<void>
}

export async function startProxy(databaseUrl: string): Promise<Proxy> {
  let target = new URL(databaseUrl)
  let isHolding = false
  const sockets = new Set<Socket>()
  const directions = new Set<Direction>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      const direction = new Direction(from, to)
      sockets.add(from)
      directions.add(direction)
      if (isHolding) direction.hold()
      const close = () => {
        sockets.delete(from)
        directions.delete(direction)
        if (!direction.isHeld) to.destroy()
      }
      from.on('error', close)
      from.on('close', close)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(databaseUrl)
  url.port = String((server.address() as AddressInfo).port)
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  const choke = async () => {
    for (const socket of sockets) socket.unpipe().pause()
    await sleep(CHOKE_MS)
    for (const socket of sockets) socket.end()
    await sleep(CHOKE_MS)
    cut()
  }
  return {
    url: url.href,
    cut,
    choke,
    hold: () => {
      isHolding = true
      for (const direction of directions) direction.hold()
    },
    deliver: () => {
      isHolding = false
      for (const direction of directions) direction.deliver()
    },
    moveTo: (other) => {
      target = new URL(other)
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      cut()
      await closed
    },
  }
}

/** Bytes from one socket to another. */
class Direction {
  isHeld = false
  readonly #held: Buffer[] = []
  readonly #keep = (chunk: Buffer) => void this.#held.push(chunk)

  constructor(
    private readonly from: Socket,
    private readonly to: Socket,
  ) {
    from.pipe(to)
  }

  hold(): void {
    this.isHeld = true
    this.from.unpipe().on('data', this.#keep).resume()
  }

  deliver(): void {
    // A connection that ended while it was held stays open on the other side.
    if (!this.isHeld || this.from.readableEnded || this.from.destroyed) return
    this.isHeld = false
    this.from.off('data', this.#keep)
    for (const chunk of this.#held.splice(0)) this.to.write(chunk)
    this.from.pipe(this.to)
  }
}
