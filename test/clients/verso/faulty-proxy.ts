// An HTTP proxy that loses requests and responses, or answers itself, as a test tells it to.
import {
  Agent,
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'

export type Fault =
  /** The connection ends before the service gets the request. */
  | 'lose-request'
  /** The service has done its work, and the connection ends without a response. */
  | 'lose-response'
  /** The connection ends in the middle of the response. */
  | 'cut-response'
  /** Nothing happens any more, and the connection stays open. */
  | 'hang'
  /** A response of the proxy itself: a whole HTTP message. */
  | { readonly message: string }

/** A request as the proxy sees it. */
export interface ProxiedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
}

export interface FaultyProxy {
  readonly url: string
  /** Requests that came to the proxy, in order. */
  readonly requests: readonly ProxiedRequest[]
  /** Chooses the fault of each request; undefined passes it on. */
  choose: (request: ProxiedRequest) => Fault | undefined
  /** The service; another one after a restart. */
  target: string
  /** Ends all connections. */
  cut(): void
  close(): Promise<void>
}

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const requests: ProxiedRequest[] = []
  const agent = new Agent({ keepAlive: true })
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    const seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers }
    requests.push(seen)
    const fault = proxy.choose(seen)
    void relay((body) => forward(proxy.target, agent, request, body), request, response, fault)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    target,
    choose: () => undefined,
    cut: () => {
      for (const socket of sockets) socket.destroy()
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      proxy.cut()
      agent.destroy()
      await closed
    },
  }
  return proxy
}

async function relay(
  send: (body: Buffer) => Promise<IncomingMessage>,
  request: IncomingMessage,
  response: ServerResponse,
  fault: Fault | undefined,
): Promise<void> {
  const { socket } = request
  try {
    const body = await buffer(request)
    if (fault === 'hang') return
    if (fault === 'lose-request') return void socket.destroy()
    // Written to the socket: the tests count failures of servers in this process as failures of the service.
    if (typeof fault === 'object') return void socket.end(fault.message)
    const answer = await send(body)
    if (fault === 'lose-response') {
      await buffer(answer)
      socket.destroy()
      return
    }
    response.writeHead(answer.statusCode ?? 0, answer.rawHeaders)
    if (fault === 'cut-response') {
      const content = await buffer(answer)
      response.write(content.subarray(0, content.length / 2), () => socket.destroy())
      return
    }
    response.on('close', () => answer.destroy())
    answer.on('error', () => socket.destroy())
    answer.pipe(response)
  } catch {
    // The service is down, or the client has gone: both end the connection.
    socket.destroy()
  }
}

async function forward(
  target: string,
  agent: Agent,
  { method, url = '', headers }: IncomingMessage,
  body: Buffer,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = sendRequest(new URL(url, target), { method, headers, agent }, resolve)
    sent.on('error', reject)
    sent.end(body)
  })
}
