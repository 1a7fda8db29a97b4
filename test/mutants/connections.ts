// Mutants of the connection: servers in front of the real one that treat requests on a connection wrongly.
import type { Server } from 'node:http'
import { createServer, connect, type AddressInfo, type Socket } from 'node:net'

/** One request on a connection; `isWhole` is false if its connection ended before its body did. */
export interface CutRequest {
  readonly head: string
  readonly body: Buffer
  readonly isWhole: boolean
  /** Its number on the connection. */
  readonly index: number
}

/** Returns the answers to send, each as soon as it resolves, or `undefined` to answer nothing. */
export type BrokenConnection = (
  request: CutRequest,
  ask: (bytes: string | Buffer) => Promise<Buffer>,
) => Promise<Buffer | undefined>

/** Answers pipelined requests as they finish. The first one takes longer. */
export const answersAsTheyFinish: BrokenConnection = async (request, ask) => {
  if (request.index === 0) await new Promise((resolve) => setTimeout(resolve, 50))
  return request.isWhole ? ask(textOf(request)) : undefined
}

/** Runs the part of a body that has arrived when the client disconnects. */
export const runsPrefixes: BrokenConnection = async (request, ask) => {
  const head = request.head.replace(/content-length: \d+/i, `content-length: ${request.body.length}`)
  return ask(Buffer.concat([Buffer.from(head), request.body]))
}

/** Runs each create twice. */
export const createsTwice: BrokenConnection = async (request, ask) => {
  if (!request.isWhole) return undefined
  if (request.head.startsWith('PUT ')) await ask(textOf(request))
  return ask(textOf(request))
}

/** Acknowledges updates without running them. */
export const acknowledgesOnly: BrokenConnection = async (request, ask) => {
  if (!request.isWhole) return undefined
  if (!request.head.startsWith('POST ')) return ask(textOf(request))
  const { data } = JSON.parse(request.body.toString()) as { data: { version: number; title: string } }
  const id = Number(/\/(\d+) HTTP/.exec(request.head)?.[1])
  const body = JSON.stringify({ status: 0, data: [{ id, version: data.version + 1, title: data.title }] })
  return Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}

function textOf({ head, body }: CutRequest): Buffer {
  return Buffer.concat([Buffer.from(head), body])
}

/** Answers a late request and goes on reading it. */
export function endLateRequest(_: Error, socket: Socket): void {
  socket.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
}

/** Hides from a server that clients have disconnected. Returns a function that tells it, so that the server can close. */
export function forgetAborts(server: Server): () => void {
  const hidden: (() => void)[] = []
  server.prependListener('request', (_, response) => {
    const emit = response.emit.bind(response)
    let isHidden = false
    response.emit = (event: string | symbol, ...args: unknown[]) => {
      if (event !== 'close' || response.writableFinished || isHidden) return emit(event, ...args)
      isHidden = true
      hidden.push(() => emit(event, ...args))
      return false
    }
  })
  return () => {
    for (const tell of hidden) tell()
  }
}

/** Runs a mutant in front of the server at `url` while `work` runs. */
export async function withBrokenConnections<T>(
  url: string,
  broken: BrokenConnection,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const { hostname, port } = new URL(url)
  const ask = (bytes: string | Buffer) => askAlone({ host: hostname, port: Number(port) }, bytes)
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    cutRequests(socket, (request) => {
      void broken(request, ask).then((answer) => {
        if (answer && !socket.destroyed) socket.write(answer)
      })
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

/** Cuts the bytes of a connection into requests by their content-length. */
function cutRequests(socket: Socket, onRequest: (request: CutRequest) => void): void {
  let bytes = Buffer.alloc(0)
  let index = 0
  const cut = (isEnded: boolean) => {
    for (let headEnd = bytes.indexOf('\r\n\r\n'); headEnd >= 0; headEnd = bytes.indexOf('\r\n\r\n')) {
      const head = bytes.subarray(0, headEnd + 4).toString('latin1')
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      const end = headEnd + 4 + length
      if (bytes.length < end && !isEnded) return
      const isWhole = bytes.length >= end
      onRequest({ head, body: bytes.subarray(headEnd + 4, end), isWhole, index: index++ })
      bytes = bytes.subarray(end)
    }
  }
  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk])
    cut(false)
  })
  let isCut = false
  const end = () => {
    if (!isCut) cut(true)
    isCut = true
  }
  socket.on('end', () => {
    end()
    socket.end()
  })
  socket.on('error', () => undefined)
  socket.on('close', end)
}

/** Sends one request on a connection of its own and returns the whole answer. */
async function askAlone(address: { host: string; port: number }, bytes: string | Buffer): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect(address)
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      resolve(Buffer.concat(chunks).subarray())
    })
    socket.write(
      Buffer.from(bytes.toString('latin1').replace('connection: keep-alive', 'connection: close'), 'latin1'),
    )
  })
}
