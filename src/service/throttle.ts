// Failed logins are counted per pair of account and address, and per address, in the store: all nodes agree.
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../errors.js'
import type { Transaction } from '../store/database.js'
import { countFailure, discountFailure, type FailureCount } from '../store/login-failures.js'
import type { App } from './app.js'

export const FAILURE_WINDOW_MS = 60_000
const FREE_FAILURES = 5
const MAX_FAILURES = 30
/** One address may stand for many people. */
const ADDRESS_FACTOR = 10
const DELAY_STEP_MS = 50
const MAX_DELAY_MS = 500

export interface Attempt {
  /** How late a failure is answered. */
  readonly delayMs: number
  readonly keys: readonly string[]
}

/** Counts a login as failed before it is tried: a hundred at once are counted too. `forgive` takes it back. */
export async function countAttempt(app: App, username: string, address: string): Promise<Attempt> {
  const place = networkOf(address)
  const now = app.clock.now()
  const keys = [JSON.stringify([username, place]), place]
  const [pair, network] = await app.db.transaction(async (tx) => [
    await countFailure(tx, keys[0] ?? '', now, FAILURE_WINDOW_MS),
    await countFailure(tx, keys[1] ?? '', now, FAILURE_WINDOW_MS),
  ])
  refuseIfPast(app, pair, MAX_FAILURES, now)
  refuseIfPast(app, network, MAX_FAILURES * ADDRESS_FACTOR, now)
  const past = Math.max(excess(pair, FREE_FAILURES), excess(network, FREE_FAILURES * ADDRESS_FACTOR))
  return { delayMs: Math.min(past * DELAY_STEP_MS, MAX_DELAY_MS), keys }
}

export async function forgive(tx: Transaction, attempt: Attempt): Promise<void> {
  for (const key of attempt.keys) await discountFailure(tx, key)
}

export async function answerLate(attempt: Attempt): Promise<void> {
  if (attempt.delayMs > 0) await sleep(attempt.delayMs)
}

function excess(count: FailureCount | undefined, free: number): number {
  return Math.max(0, (count?.failures ?? 0) - free)
}

function refuseIfPast(app: App, count: FailureCount | undefined, most: number, now: number): void {
  if (!count || app.settings.isDemo || count.failures <= most) return
  const retryAfterS = Math.max(1, Math.ceil((count.sinceMs + FAILURE_WINDOW_MS - now) / 1000))
  throw new Refusal('too-many', 'Too many failed logins: try again later', { retryAfterS })
}

/** Whoever has one IPv6 address has the 2^64 beside it. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '')
  if (!plain.includes(':')) return plain
  const [head = '', tail = ''] = plain.split('::')
  const [left, right] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)]
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`
}
