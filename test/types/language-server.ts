// Asks the language server of TypeScript for completions, as an editor does.
import { spawn, type ChildProcess } from 'node:child_process'
import { createRequire } from 'node:module'

interface Entry {
  readonly name: string
}

interface Response {
  readonly type: string
  readonly request_seq: number
  readonly body?: { readonly entries: readonly Entry[] }
}

const require = createRequire(import.meta.url)
/** The package `typescript` of this repository contains the real one. */
const SERVER = createRequire(require.resolve('typescript')).resolve('@typescript/old/lib/tsserver.js')

export class LanguageServer {
  readonly #process: ChildProcess
  readonly #waiting = new Map<number, (response: Response) => void>()
  #sequence = 0
  #received = Buffer.alloc(0)

  constructor() {
    this.#process = spawn(process.execPath, [SERVER], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#process.stdout?.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.#read()
    })
  }

  /** Opens a file. The next request waits until its project is loaded. */
  open(file: string): void {
    this.#send('open', { file })
  }

  /** Completions at a place in the text of the file, counted from 0. */
  async complete(file: string, text: string, index: number): Promise<readonly string[]> {
    const before = text.slice(0, index).split('\n')
    const place = { line: before.length, offset: (before.at(-1)?.length ?? 0) + 1 }
    const sequence = this.#send('completionInfo', { file, ...place })
    const { body } = await new Promise<Response>((resolve) => this.#waiting.set(sequence, resolve))
    return body?.entries.map(({ name }) => name) ?? []
  }

  stop(): void {
    this.#process.kill()
  }

  #send(command: string, parameters: object): number {
    const seq = ++this.#sequence
    this.#process.stdin?.write(
      `${JSON.stringify({ seq, type: 'request', command, arguments: parameters })}\n`,
    )
    return seq
  }

  /** A message is a header with its length, an empty line, and JSON. */
  #read(): void {
    for (;;) {
      const header = /^Content-Length: (\d+)\r\n\r\n/.exec(this.#received.toString('latin1', 0, 100))
      if (!header) return
      const [begin, end] = [header[0].length, header[0].length + Number(header[1])]
      if (this.#received.length < end) return
      const message = JSON.parse(this.#received.toString('utf8', begin, end)) as Response
      this.#received = this.#received.subarray(end)
      if (message.type === 'response') this.#waiting.get(message.request_seq)?.(message)
    }
  }
}
