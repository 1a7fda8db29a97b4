// One connection whose bytes a test writes itself, and whose answers it reads one by one.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Answer } from './exchange.js'
import { addressOf, decodeBody } from './exchange.js'

const SILENCE_MS = 20_000

export class RawConnection {
  #bytes = Buffer.alloc(0)
  #isClosed = false
  #wake: () => void = () => undefined

  private constructor(readonly socket: Socket) {
    socket.setNoDelay(true)
    socket.setTimeout(SILENCE_MS, () => socket.destroy())
    socket.on('data', (chunk) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
      this.#wake()
    })
    // The server may reset a connection whose request it need not read to its end. The event `close` follows.
    socket.on('error', () => undefined)
    socket.on('end', () => {
      this.#wake()
    })
    socket.on('close', () => {
      this.#isClosed = true
      this.#wake()
    })
  }

  static async open(url: string): Promise<RawConnection> {
    const socket = connect({ ...addressOf(url), allowHalfOpen: true })
    const connection = new RawConnection(socket)
    await once(socket, 'connect')
    return connection
  }

  write(bytes: string | Buffer): void {
    this.socket.write(bytes)
  }

  /** Writes each piece as a packet of its own. */
  async writePieces(pieces: readonly Buffer[]): Promise<void> {
    for (const piece of pieces) {
      this.socket.write(piece)
      await new Promise(setImmediate)
    }
  }

  /** Ends the sending side only; answers can still be read. */
  halfClose(): void {
    this.socket.end()
  }

  reset(): void {
    this.socket.resetAndDestroy()
  }

  close(): void {
    this.socket.destroy()
  }

  /** Waits until any bytes have arrived. */
  async bytes(): Promise<number> {
    while (this.#bytes.length === 0 && !this.#isClosed) await this.#more()
    return this.#bytes.length
  }

  /** The next answer in the order of arrival; undefined if the server has closed the connection before it was whole. */
  async answer(): Promise<Answer | undefined> {
    for (;;) {
      const parsed = parseAnswer(this.#bytes)
      if (parsed) {
        this.#bytes = this.#bytes.subarray(parsed.length)
        return parsed.answer
      }
      if (this.#isClosed || this.socket.readableEnded) return undefined
      await this.#more()
    }
  }

  async answers(count: number): Promise<(Answer | undefined)[]> {
    const all: (Answer | undefined)[] = []
    while (all.length < count) all.push(await this.answer())
    return all
  }

  /** Waits until the server has closed its side. Returns the answers that nobody has read. */
  async rest(): Promise<Answer[]> {
    const all: Answer[] = []
    for (let answer = await this.answer(); answer; answer = await this.answer()) all.push(answer)
    return all
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.#isClosed) resolve()
    })
  }
}

/** Parses the first answer; undefined until all of its bytes are there. */
function parseAnswer(bytes: Buffer): { answer: Answer; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  )
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0)
  const bodyAt = headEnd + 4
  const body =
    headers['transfer-encoding'] === 'chunked'
      ? findChunks(bytes, bodyAt)
      : findSized(bytes, bodyAt, Number(headers['content-length'] ?? 0))
  return body && { answer: { status, headers, text: decodeBody(headers, body.text) }, length: body.end }
}

function findSized(bytes: Buffer, start: number, length: number): { text: Buffer; end: number } | undefined {
  const end = start + length
  return bytes.length < end ? undefined : { text: bytes.subarray(start, end), end }
}

function findChunks(bytes: Buffer, start: number): { text: Buffer; end: number } | undefined {
  const chunks: Buffer[] = []
  for (let at = start; ;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16)
    const end = lineEnd + 2 + size + 2
    if (bytes.length < end) return undefined
    if (size === 0) return { text: Buffer.concat(chunks), end }
    chunks.push(bytes.subarray(lineEnd + 2, end - 2))
    at = end
  }
}
