// Formats log lines for a person at a terminal. Programs read the JSON lines instead.
import { escapeControls } from '../terminal/escape-controls.js'

const LEVELS: Readonly<Record<number, readonly [name: string, color: string]>> = {
  10: ['TRACE', '\u001b[90m'],
  20: ['DEBUG', '\u001b[90m'],
  30: ['INFO ', '\u001b[32m'],
  40: ['WARN ', '\u001b[33m'],
  50: ['ERROR', '\u001b[31m'],
  60: ['FATAL', '\u001b[31m'],
}
const RESET = '\u001b[0m'
/** `HH:mm:ss` of an ISO time. */
const TIME_OF_DAY = [11, 19] as const
/** Fields that the head of the line shows, or that say nothing to a reader. */
const HEAD_FIELDS = new Set(['level', 'time', 'pid', 'msg', 'err'])

/** Turns lines of JSON, as pino writes them, into readable lines. A line that is not JSON stays as it is. */
export function formatLogLines(lines: string, hasColors: boolean): string {
  return lines.replaceAll(/[^\n]+/g, (line) => {
    const entry = parseLogEntry(line)
    return entry ? formatLogEntry(entry, hasColors) : line
  })
}

type LogEntry = Readonly<Record<string, unknown>>

function parseLogEntry(line: string): LogEntry | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as LogEntry) : undefined
  } catch {
    return undefined
  }
}

function formatLogEntry(entry: LogEntry, hasColors: boolean): string {
  const { level, time, msg, err } = entry
  const [name, color] = LEVELS[Number(level)] ?? [String(level), '']
  const timeText = typeof time === 'number' ? `${new Date(time).toISOString().slice(...TIME_OF_DAY)}Z` : ''
  const fields = Object.entries(entry)
    .filter(([key]) => !HEAD_FIELDS.has(key))
    .map(([key, value]) => `${key}=${formatLogValue(value)}`)
  const head = hasColors ? `${color}${name}${RESET}` : name
  return (
    [timeText, head, typeof msg === 'string' ? escapeControls(msg) : '', ...fields]
      .filter((part) => part !== '')
      .join(' ') + formatStack(err)
  )
}

function formatLogValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return /^[^\s"=]+$/.test(text) ? escapeControls(text) : escapeControls(JSON.stringify(value))
}

/** An unexpected error is shown with its stack, one frame a line. */
function formatStack(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  const { stack, message } = error as { stack?: unknown; message?: unknown }
  const text = typeof stack === 'string' ? stack : String(message)
  return text
    .split('\n')
    .map((line) => `\n    ${escapeControls(line)}`)
    .join('')
}
