import { pino, type Level, type Logger } from 'pino'

const STDERR = 2

// `detail` is where PostgreSQL quotes the values of a row.
const SECRET_KEYS = ['password', 'passwordHash', 'token', 'secret', 'cookie', 'authorization', 'detail']
const SECRET_HEADERS = ['set-cookie', 'api-key', 'x-csrf-token']

/** Lines of JSON on stderr. Those of one turn of the event loop are written together, and the last words of a process are not lost. */
export function createLogger(level: Level | 'silent'): Logger {
  const paths = [
    ...SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]),
    ...SECRET_HEADERS.flatMap((key) => [`["${key}"]`, `*["${key}"]`, `*.*["${key}"]`]),
  ]
  const redact = { paths, censor: '[secret]' }
  const lines = new BufferedLogDestination(pino.destination({ dest: STDERR, sync: true }))
  process.on('exit', () => {
    lines.flushSync()
  })
  return pino({ level, redact, base: { pid: process.pid } }, lines)
}

/** A call of the system for each line would be a good part of what a request costs. */
class BufferedLogDestination {
  #lines = ''

  constructor(private readonly destination: { write(text: string): unknown }) {}

  write(line: string): void {
    if (this.#lines === '')
      setImmediate(() => {
        this.flushSync()
      })
    this.#lines += line
  }

  /** Called by the logger itself before a process ends by a fatal error. */
  flushSync(): void {
    if (this.#lines === '') return
    const lines = this.#lines
    this.#lines = ''
    this.destination.write(lines)
  }
}
