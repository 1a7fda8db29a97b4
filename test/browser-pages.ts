// Serves a page with a script on the origin of a service, as a reverse proxy does, or on an origin of its own.
import { createServer, request as sendRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { build, type InlineConfig } from 'vite'
import config from '../vitest.config.js'

const HTML =
  '<!doctype html><meta charset="utf-8"><title>Test</title><div id="root"></div><script src="/page.js"></script>'
const CSP = `default-src 'none'; script-src 'self'; connect-src *; img-src 'self'; style-src 'self'`

export interface Pages {
  readonly url: string
  /** Forwards all other requests to this service. */
  target: string | undefined
  /** Breaks all connections, with their requests. */
  dropConnections(): void
  close(): void
}

/** Bundles a file into one script for a page, whose exports are properties of the global `bundle`. */
export async function bundleForPage(entry: string, settings: InlineConfig = {}): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'error',
    ...(config.resolve ? { resolve: config.resolve } : {}),
    define: { 'process.env.NODE_ENV': '"production"' },
    ...settings,
    build: {
      ...{ write: false, minify: false, target: 'es2022', modulePreload: false, reportCompressedSize: false },
      lib: { entry, formats: ['iife'], name: 'bundle', fileName: 'page' },
    },
  })
  const outputs = [result].flat().flatMap((each) => ('output' in each ? each.output : []))
  const [chunk, ...others] = outputs.flatMap((each) => (each.type === 'chunk' ? [each.code] : []))
  if (chunk === undefined || others.length > 0) throw new Error(`${entry} is not one script`)
  return chunk
}

export async function startPages(script: string): Promise<Pages> {
  const sockets = new Set<Socket>()
  const pages = { target: undefined as string | undefined }
  const server = createServer((request, response) => {
    const own = request.url === '/' ? HTML : request.url === '/page.js' ? script : undefined
    if (own === undefined) {
      forward(pages.target, request, response)
      return
    }
    const type = own === HTML ? 'text/html' : 'text/javascript'
    response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'content-security-policy': CSP })
    response.end(own)
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const dropConnections = () => {
    for (const socket of sockets) socket.destroy()
  }
  return Object.assign(pages, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    dropConnections,
    close: () => {
      server.close()
      dropConnections()
    },
  })
}

function forward(target: string | undefined, request: IncomingMessage, response: ServerResponse): void {
  if (target === undefined) {
    response.writeHead(404).end()
    return
  }
  const { method, headers, url = '/' } = request
  const upstream = sendRequest(new URL(url, target), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    // A stream of events begins before its first event.
    response.flushHeaders()
    answer.pipe(response)
    answer.once('error', () => response.destroy())
  })
  upstream.once('error', () => response.destroy())
  response.once('close', () => upstream.destroy())
  request.pipe(upstream)
}
