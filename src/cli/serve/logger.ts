import { pino, type Level, type Logger } from 'pino'
import { formatLogLines } from './log-lines.js'

const STDERR = 2

// PostgreSQL quotes the values of a row in `detail`.
const SECRET_KEYS = ['password', 'passwordHash', 'token', 'secret', 'cookie', 'authorization', 'detail']
const SECRET_HEADERS = ['set-cookie', 'api-key', 'x-csrf-token']

export type LogFormat = 'auto' | 'json' | 'text'

/**
 * Logs to stderr: lines of JSON, or readable lines. `auto` chooses readable lines on a terminal. Lines of one event-loop turn are written together; the rest is flushed when the process
 * exits.
 */
export function createLogger(level: Level | 'silent', format: LogFormat): Logger {
  const paths = [
    ...SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]),
    ...SECRET_HEADERS.flatMap((key) => [`["${key}"]`, `*["${key}"]`, `*.*["${key}"]`]),
  ]
  const redact = { paths, censor: '[secret]' }
  const destination = pino.destination({ dest: STDERR, sync: true })
  const isText = format === 'text' || (format === 'auto' && process.stderr.isTTY)
  const lines = new BufferedLogDestination(isText ? createTextDestination(destination) : destination)
  process.on('exit', () => {
    lines.flushSync()
  })
  return pino({ level, redact, base: { pid: process.pid } }, lines)
}

interface LogDestination {
  write(text: string): unknown
}

function createTextDestination(destination: LogDestination): LogDestination {
  const hasColors = process.stderr.isTTY && !process.env['NO_COLOR']
  return { write: (lines) => destination.write(formatLogLines(lines, hasColors)) }
}

/**
 * Buffers lines for one event-loop turn, because a write system call for each line is expensive compared to a request.
 */
class BufferedLogDestination {
  #lines = ''

  constructor(private readonly destination: LogDestination) {}

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
