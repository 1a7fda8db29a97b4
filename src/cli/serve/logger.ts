import { pino, type Level, type Logger } from 'pino'

const STDERR = 2

// PostgreSQL quotes the values of a row in `detail`.
const SECRET_KEYS = ['password', 'passwordHash', 'token', 'secret', 'cookie', 'authorization', 'detail']
const SECRET_HEADERS = ['set-cookie', 'api-key', 'x-csrf-token']

/**
 * Logs lines of JSON to stderr. Lines of one event-loop turn are written together; the rest is flushed when the process
 * exits.
 */
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

/**
 * Buffers lines for one event-loop turn, because a write system call for each line is expensive compared to a request.
 */
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

  /** pino calls this before the process exits after a fatal error. */
  flushSync(): void {
    if (this.#lines === '') return
    const lines = this.#lines
    this.#lines = ''
    this.destination.write(lines)
  }
}
