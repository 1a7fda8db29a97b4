// A time in words, such as "2 minutes ago". It stays true while the page is open.
import Box from '@mui/material/Box'
import { useEffect } from 'react'
import { Observable, useObservable } from '../service/observable.js'
import { useLocale, useTexts } from './texts.js'

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const WEEK_MS = 7 * DAY_MS
const MONTH_MS = 30.44 * DAY_MS
const YEAR_MS = 365.25 * DAY_MS
const TICK_MS = 30 * SECOND_MS
const JUST_NOW_MS = 30 * SECOND_MS

/** Each unit is used from its length on. */
const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', YEAR_MS],
  ['month', MONTH_MS],
  ['week', WEEK_MS],
  ['day', DAY_MS],
  ['hour', HOUR_MS],
  ['minute', MINUTE_MS],
  ['second', SECOND_MS],
]

/** `2 minutes ago`, `in 3 days`. A text that is no time is returned as it is. */
export function formatRelative(iso: string, locale: string, now: number = Date.now()): string {
  const difference = Date.parse(iso) - now
  if (Number.isNaN(difference)) return iso
  const [unit, length] = UNITS.find((each) => Math.abs(difference) >= each[1]) ?? ['second', SECOND_MS]
  return new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }).format(
    Math.trunc(difference / length),
    unit,
  )
}

/** The exact local time, with seconds. */
export function formatExact(iso: string, locale: string): string {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return iso
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(time)
}

const clock = new Observable(Date.now())
let watchers = 0
let timer: ReturnType<typeof setInterval> | undefined

/** One timer serves all times of a page. */
function watchClock(): () => void {
  if (watchers++ === 0) timer = setInterval(() => clock.set(Date.now()), TICK_MS)
  return () => {
    if (--watchers === 0) clearInterval(timer)
  }
}

export function RelativeTime({ on }: { readonly on: string }) {
  const locale = useLocale()
  const { time } = useTexts()
  useObservable(clock)
  useEffect(watchClock, [])
  // The clock only causes a new rendering: a time that arrives between two ticks is compared with the time now.
  const age = Date.now() - Date.parse(on)
  const text = Math.abs(age) < JUST_NOW_MS ? time.justNow : formatRelative(on, locale)
  return (
    <Box component="time" dateTime={on} title={formatExact(on, locale)}>
      {text}
    </Box>
  )
}
