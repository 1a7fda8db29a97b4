// A tsserver process, as editors run it.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import path from 'node:path'

const TSSERVER = path.join(import.meta.dirname, '../../node_modules/@typescript/old/lib/tsserver.js')

interface Reply {
  readonly request_seq?: number
  readonly success?: boolean
  readonly message?: string
  readonly body?: unknown
}

interface Position {
  readonly file: string
  readonly line: number
  readonly offset: number
}

export class LanguageServer {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #seq = 0

  constructor() {
    this.#child = spawn(process.execPath, [TSSERVER, '--disableAutomaticTypingAcquisition'])
    let printed = ''
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (printed + text).split('\n')
      printed = lines.pop() ?? ''
      // Messages are lines of JSON between headers.
      for (const line of lines.filter((each) => each.startsWith('{')))
        this.#receive(JSON.parse(line) as Reply)
    })
  }

  #receive(reply: Reply): void {
    if (reply.request_seq !== undefined) this.#waiting.get(reply.request_seq)?.(reply)
  }

  open(file: string, fileContent: string): void {
    this.#child.stdin.write(
      `${JSON.stringify({ seq: ++this.#seq, type: 'request', command: 'open', arguments: { file, fileContent } })}\n`,
    )
  }

  /** Returns the names that an editor would offer at this position. */
  async complete(position: Position): Promise<readonly string[]> {
    const seq = ++this.#seq
    const reply = new Promise<Reply>((resolve) => this.#waiting.set(seq, resolve))
    const message = { seq, type: 'request', command: 'completionInfo', arguments: position }
    this.#child.stdin.write(`${JSON.stringify(message)}\n`)
    const { success, message: reason, body } = await reply
    if (success !== true) throw new Error(reason)
    return (body as { entries: readonly { name: string }[] }).entries.map(({ name }) => name)
  }

  stop(): void {
    this.#child.kill()
  }
}
