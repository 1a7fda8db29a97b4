// Dates and times are canonical texts that sort chronologically. JSON, the log and both engines use the same spelling.

const DATE_PATTERN = /^(\d{4})-(\d{2})-(\d{2})$/
const TIME_PATTERN = /^(\d{2}):(\d{2})(?::(\d{2}))?$/
const DATETIME_PATTERN =
  /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}(?::\d{2}(?:\.(\d{1,9}))?)?)([Zz]|[+-]\d{2}:\d{2})$/

export function parseDate(input: string): string | undefined {
  const match = DATE_PATTERN.exec(input)
  if (!match) return undefined
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  const isReal = year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= countDaysInMonth(year, month)
  return isReal ? input : undefined
}

export function parseTime(input: string): string | undefined {
  const match = TIME_PATTERN.exec(input)
  if (!match) return undefined
  const [hours, minutes, seconds] = [Number(match[1]), Number(match[2]), Number(match[3] ?? '0')]
  if (hours > 23 || minutes > 59 || seconds > 59) return undefined
  return match[3] === undefined ? `${input}:00` : input
}

/** Converts RFC 3339 with any offset to UTC with milliseconds. Truncates finer fractions. */
export function parseDatetime(input: string): string | undefined {
  const match = DATETIME_PATTERN.exec(input)
  if (!match) return undefined
  const [, dateText = '', timeText = '', fraction = '', zone = ''] = match
  const [date, time] = [parseDate(dateText), parseTime(timeText.split('.')[0] ?? '')]
  const offsetMin = parseOffset(zone)
  if (date === undefined || time === undefined || offsetMin === undefined) return undefined
  // The input is already canonical, as every stored value is.
  if (zone === 'Z' && fraction.length === 3 && input[10] === 'T') return input
  const local = Date.parse(`${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  return formatDatetime(local - offsetMin * 60_000)
}

export const TIMESTAMP_RULE =
  'a date and time with an offset such as 2026-03-01T12:00:00Z (write + as %2B in a URL)'

/** Accepts a date, too: it means midnight UTC. */
export function parseTimestamp(input: unknown): string | undefined {
  const text = typeof input === 'string' ? input : ''
  return parseDatetime(text) ?? parseDate(text)
}

/** Formats Unix milliseconds as the canonical text; undefined outside the years 1 to 9999. */
function formatDatetime(ms: number): string | undefined {
  const date = new Date(ms)
  const year = date.getUTCFullYear()
  return year >= 1 && year <= 9999 ? date.toISOString() : undefined
}

function parseOffset(zone: string): number | undefined {
  if (zone === 'Z' || zone === 'z') return 0
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(4, 6))]
  if (hours > 23 || minutes > 59) return undefined
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}

function countDaysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}
