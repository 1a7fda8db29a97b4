// A proxy between the service and its database that can cut the connections.
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const CHOKE_MS = 200

export interface Proxy {
  readonly url: string
  /** Resets every open connection; new ones are served. */
  cut(): void
  /** Stops reading while the other side is still sending, then closes the connections. */
  choke(): Promise<void>
  close(): Promise<void>
}

export async function startProxy(databaseUrl: string): Promise<Proxy> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
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
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      cut()
      await closed
    },
  }
}
