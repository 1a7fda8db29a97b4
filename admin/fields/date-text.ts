// Dates and times as the service has them, as inputs have them, and as people read them.

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
const TIME = /^(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?$/
const MS_PER_MINUTE = 60_000

/** A date has no time zone: it is formatted in UTC, so that it is the same day everywhere. */
export function formatDate(text: string, locale: string): string {
  const date = parseDate(text)
  return date ? new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' }).format(date) : text
}

function parseDate(text: string): Date | undefined {
  const match = DATE.exec(text)
  if (!match) return undefined
  const date = new Date(0)
  // Not Date.UTC, for which the year 24 is 1924.
  date.setUTCFullYear(Number(match[1]), Number(match[2]) - 1, Number(match[3]))
  return date
}

/** A moment in the time zone of the person, with seconds. */
export function formatDatetime(text: string, locale: string): string {
  const date = new Date(text)
  if (Number.isNaN(date.getTime())) return text
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(date)
}

/** Seconds are shown if there are any. */
export function formatTime(text: string): string {
  return text.replace(/^(\d{2}:\d{2}):00$/, '$1')
}

/** The value of a time input as the service has it: `13:45` → `13:45:00`. */
export function completeTime(text: string): string {
  return /^\d{2}:\d{2}$/.test(text) ? `${text}:00` : text
}

/** `2024-01-31T12:45:00.000Z` → the value of a `datetime-local` input, in the time zone of the person. */
export function toLocalInput(text: string): string {
  const date = new Date(text)
  if (text === '' || Number.isNaN(date.getTime())) return ''
  const pad = (number: number, length = 2) => String(number).padStart(length, '0')
  const day = `${pad(date.getFullYear(), 4)}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`
  const milliseconds = date.getMilliseconds() === 0 ? '' : `.${pad(date.getMilliseconds(), 3)}`
  return `${day}T${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}${milliseconds}`
}

/**
 * The value of a `datetime-local` input → UTC as the service has it. Undefined if it is no complete date and time. When clocks are set
 * back, an hour exists twice: then `previous`, the value before an edit, tells which one is meant.
 */
export function toUtcText(local: string, previous?: string): string | undefined {
  const [day = '', time = ''] = local.split('T')
  const date = DATE.exec(day)
  const clock = TIME.exec(time)
  if (!date || !clock) return undefined
  const moment = new Date(2000, 0, 1)
  moment.setFullYear(Number(date[1]), Number(date[2]) - 1, Number(date[3]))
  const milliseconds = Number((clock[4] ?? '').padEnd(3, '0'))
  moment.setHours(Number(clock[1]), Number(clock[2]), Number(clock[3] ?? 0), milliseconds)
  if (Number.isNaN(moment.getTime())) return undefined
  const twin = previous === undefined ? undefined : findTwin(moment, new Date(previous))
  return (twin ?? moment).toISOString()
}

/** The moment with the same local time and the UTC offset of another moment, if there is one. */
function findTwin(moment: Date, other: Date): Date | undefined {
  const minutes = other.getTimezoneOffset() - moment.getTimezoneOffset()
  if (Number.isNaN(minutes) || minutes === 0) return undefined
  const twin = new Date(moment.getTime() + minutes * MS_PER_MINUTE)
  return toLocalInput(twin.toISOString()) === toLocalInput(moment.toISOString()) ? twin : undefined
}

/** Today in the time zone of the person. */
export function findToday(now: Date): string {
  return toLocalInput(now.toISOString()).slice(0, 'YYYY-MM-DD'.length)
}

export function findTimeOfDay(now: Date): string {
  return toLocalInput(now.toISOString()).slice('YYYY-MM-DDT'.length, 'YYYY-MM-DDTHH:mm:ss'.length)
}
