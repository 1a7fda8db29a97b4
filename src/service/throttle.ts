// Failed logins are counted per pair of account and address, and per address, in the store: all nodes agree.
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../errors.js'
import { countFailure, findFailures, type FailureCount } from '../store/login-failures.js'
import type { App } from './app.js'
import { networkOf } from './network.js'

export const FAILURE_WINDOW_MS = 60_000
const FREE_FAILURES = 5
const MAX_FAILURES = 30
/** One address may stand for many people. */
const ADDRESS_FACTOR = 10
const DELAY_STEP_MS = 50
const MAX_DELAY_MS = 500

/** What failures are counted under, and how many times the usual number each may have. */
type Keys = readonly { readonly key: string; readonly factor: number }[]

export function throttleKeys(username: string, address: string): Keys {
  const place = networkOf(address)
  return [
    { key: JSON.stringify([username, place]), factor: 1 },
    { key: place, factor: ADDRESS_FACTOR },
  ]
}

/** Refuses to look at a password at all where too many have been wrong. */
export async function refuseIfThrottled(app: App, keys: Keys): Promise<void> {
  for (const { key, factor } of keys) {
    const count = await findFailures(app.db.reader, key, app.clock.now() - FAILURE_WINDOW_MS)
    if (count && count.failures >= MAX_FAILURES * factor) refuse(app, count)
  }
}

/** Counts a failure, and answers the later the more there are. */
export async function noteFailure(app: App, keys: Keys): Promise<void> {
  const now = app.clock.now()
  const counts = await app.db.transaction(async (tx) => {
    const all: (FailureCount & { factor: number })[] = []
    for (const { key, factor } of keys) {
      all.push({ ...(await countFailure(tx, key, now, FAILURE_WINDOW_MS)), factor })
    }
    return all
  })
  for (const count of counts) if (count.failures > MAX_FAILURES * count.factor) refuse(app, count)
  const past = Math.max(...counts.map(({ failures, factor }) => failures - FREE_FAILURES * factor))
  if (past > 0) await sleep(Math.min(past * DELAY_STEP_MS, MAX_DELAY_MS))
}

function refuse(app: App, { sinceMs }: FailureCount): void {
  if (app.settings.isDemo) return
  const retryAfterS = Math.max(1, Math.ceil((sinceMs + FAILURE_WINDOW_MS - app.clock.now()) / 1000))
  throw new Refusal('too-many', 'Too many failed logins: try again later', { retryAfterS })
}
