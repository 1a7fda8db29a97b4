// Serves the metrics on a port of their own, so that they need no login and no client of the service can read them.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { VersoError } from '../../errors.js'
import { LOOPBACK_IPV4 } from '../connection/loopback.js'
import { createHostCheck } from '../route/origin.js'
import { STATUS_BY_KIND } from '../route/error-status.js'
import type { Metrics } from './metrics.js'

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
const MAX_CONNECTIONS = 50
const SERVER_OPTIONS = { headersTimeout: 5_000, requestTimeout: 5_000, keepAliveTimeout: 72_000 }

export interface MetricsServer {
  readonly url: string
  close(): Promise<void>
}

export interface MetricsAddress {
  readonly host: string
  /** 0 chooses a free port. */
  readonly port: number
}

/** Rejects if the port cannot be opened. */
export async function serveMetrics(metrics: Metrics, { host, port }: MetricsAddress): Promise<MetricsServer> {
  const checkHost = createHostCheck({ host, publicUrl: undefined })
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    checkHost({ headers: request.headers, raw: request })
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (!isRead) throw new VersoError('method', 'Use GET', { allow: ['GET', 'HEAD'] })
    if (request.url?.split('?')[0] !== '/metrics')
      throw new VersoError('not-found', 'The metrics are at /metrics')
    const text = await metrics.render()
    response
      .writeHead(200, { 'content-type': CONTENT_TYPE, 'content-length': Buffer.byteLength(text) })
      .end(text)
  }
  const server = createServer(SERVER_OPTIONS, (request, response) => {
    respond(request, response).catch((error: unknown) => {
      const [status, message] =
        error instanceof VersoError ? [STATUS_BY_KIND[error.kind][0], error.message] : [500, 'Internal error']
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${message}\n`)
    })
  })
  server.maxConnections = MAX_CONNECTIONS
  server.listen({ host: host === 'localhost' ? LOOPBACK_IPV4 : host, port })
  await once(server, 'listening')
  const { address, port: chosen, family } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${chosen}/metrics`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
