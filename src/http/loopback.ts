import { createServer, type RequestListener, type ServerOptions } from 'node:http'
import { isIP, type AddressInfo, type Socket } from 'node:net'

const LOOPBACK_NAME = /^(?:localhost|.+\.localhost)$/i
const LOOPBACK = ['127.0.0.1', '::1'] as const

/** Whether this host can only be reached from this machine. */
export function isLoopback(host: string): boolean {
  const kind = isIP(host)
  if (kind === 4) return host.startsWith('127.')
  return kind === 6 ? host === '::1' : LOOPBACK_NAME.test(host)
}

/**
 * `localhost` stands for both loopback addresses, but on many machines the name leads to one only: this serves the other too.
 * Where there is no such address, nothing is served there. Answers what closes it.
 */
export async function listenOnOtherLoopback(
  bound: readonly AddressInfo[],
  options: ServerOptions,
  onRequest: RequestListener,
  onClientError: (error: Error, socket: Socket) => void,
): Promise<{ readonly address: string; close(): Promise<void> } | undefined> {
  const address = LOOPBACK.find((loopback) => !bound.some((other) => other.address === loopback))
  const port = bound[0]?.port
  if (address === undefined || port === undefined) return undefined
  const server = createServer(options, onRequest)
  server.on('clientError', onClientError)
  const isListening = await new Promise<boolean>((resolve) => {
    server.once('error', () => {
      resolve(false)
    })
    server.listen(port, address, () => {
      resolve(true)
    })
  })
  if (!isListening) return undefined
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => {
        resolve()
      })
      server.closeIdleConnections()
    })
  return { address, close }
}
