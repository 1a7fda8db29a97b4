import { createServer, type Server, type ServerOptions } from 'node:http'
import { isIP, type Socket } from 'node:net'

const LOOPBACK_HOST_PATTERN = /^(?:localhost|.+\.localhost)$/i
export const LOOPBACK_IPV4 = '127.0.0.1'
export const LOOPBACK_IPV6 = '::1'
/**
 * How many connections wait while the event loop is busy. The kernel drops others without a word, and their clients try again after 1, 3 and 7 s.
 * It may allow fewer: `net.core.somaxconn`.
 */
export const BACKLOG = 4_096

/** True if only this machine can reach the host. */
export function isLoopback(host: string): boolean {
  const kind = isIP(host)
  if (kind === 4) return host.startsWith('127.')
  return kind === 6 ? host === '::1' : LOOPBACK_HOST_PATTERN.test(host)
}

/**
 * Listens on `::1` beside 127.0.0.1, because `localhost` resolves to only one of them on many machines. Resolves with undefined if the
 * machine has no IPv6 loopback address or another process uses the port there.
 */
export async function listenOnLoopbackIpv6(
  port: number,
  options: ServerOptions,
  onClientError: (error: Error, socket: Socket) => void,
): Promise<Server | undefined> {
  const server = createServer(options)
  server.on('clientError', onClientError)
  return new Promise((resolve) => {
    server.once('error', () => {
      resolve(undefined)
    })
    server.listen(port, LOOPBACK_IPV6, BACKLOG, () => {
      resolve(server)
    })
  })
}
