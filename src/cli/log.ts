import { pino, type Level, type Logger } from 'pino'

const STDERR = 2

// `detail` is where PostgreSQL quotes the values of a row.
const SECRETS = ['password', 'passwordHash', 'token', 'secret', 'cookie', 'authorization', 'detail']
const SECRET_HEADERS = ['set-cookie', 'api-key', 'x-csrf-token']

/** Lines of JSON on stderr, written at once: the last words of a process that ends are not lost. */
export function openLog(level: Level | 'silent'): Logger {
  const paths = [
    ...SECRETS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]),
    ...SECRET_HEADERS.flatMap((key) => [`["${key}"]`, `*["${key}"]`, `*.*["${key}"]`]),
  ]
  const redact = { paths, censor: '[secret]' }
  return pino({ level, redact, base: { pid: process.pid } }, pino.destination({ dest: STDERR, sync: true }))
}
