import type { Server } from 'node:http'
import { isIP } from 'node:net'

const LOOPBACK_HOST_PATTERN = /^(?:localhost|.+\.localhost)$/i
export const LOOPBACK_IPV4 = '127.0.0.1'
export const LOOPBACK_IPV6 = '::1'

/** True if only this machine can reach the host. */
export function isLoopback(host: string): boolean {
  const kind = isIP(host)
  if (kind === 4) return host.startsWith('127.')
  return kind === 6 ? host === '::1' : LOOPBACK_HOST_PATTERN.test(host)
}

/**
 * Listens on `::1` beside 127.0.0.1, because `localhost` resolves to only one of them on many machines. Resolves with false if the
 * machine has no IPv6 loopback address or another process uses the port there.
 */
export async function listenOnLoopbackIpv6(server: Server, port: number, backlog: number): Promise<boolean> {
  return new Promise((resolve) => {
    server.once('error', () => {
      resolve(false)
    })
    server.listen(port, LOOPBACK_IPV6, backlog, () => {
      resolve(true)
    })
  })
}
