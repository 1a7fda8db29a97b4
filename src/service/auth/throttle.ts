// Failed logins are counted per pair of account and address, and per address, in the store: all nodes agree.
import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { VersoError } from '../../errors.js'
import {
  saveLoginFailure,
  findLoginFailures,
  type LoginFailureCount,
} from '../../store/auth/login-failures.js'
import type { App } from '../context/app.js'
import { noteEvent } from './events.js'
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
  return [{ key: pairKey(username, address), factor: 1 }, ...addressKeys(address)]
}

/**
 * Not the name itself: people type passwords into the wrong field, and the key is stored. Three characters tell accounts apart well
 * enough, and are too few to find out what was typed.
 */
export function pairKey(username: string, address: string): string {
  return `${hash('sha256', username, 'base64url').slice(0, 3)} ${networkOf(address)}`
}

/** For what names no account. */
export function addressKeys(address: string): Keys {
  return [{ key: networkOf(address), factor: ADDRESS_FACTOR }]
}

/** Refuses to look at a password at all where too many have been wrong. Noted if it is told where that came from. */
export async function refuseIfThrottled(app: App, keys: Keys, address?: string): Promise<void> {
  for (const { key, factor } of keys) {
    const count = await findLoginFailures(app.db.reader, key, app.clock.now() - FAILURE_WINDOW_MS)
    if (count && count.failures >= MAX_FAILURES * factor) await refuse(app, count, address)
  }
}

/** What is noted of a failure: never what was typed. */
export interface FailedLogin {
  readonly address: string
  /** The account, if there is one of that name. */
  readonly userId: number | undefined
}

/** Counts a failure, and answers the later the more there are. */
export async function noteFailure(app: App, keys: Keys, failed?: FailedLogin): Promise<void> {
  const now = app.clock.now()
  const counts = await app.db.transaction(async (tx) => {
    const all: (LoginFailureCount & { factor: number })[] = []
    for (const { key, factor } of keys) {
      all.push({ ...(await saveLoginFailure(tx, key, now, FAILURE_WINDOW_MS)), factor })
    }
    if (failed && isWorthNoting(all)) await noteEvent(app, tx, { kind: 'login-failed', ...failed })
    return all
  })
  for (const count of counts)
    if (count.failures > MAX_FAILURES * count.factor) await refuse(app, count, failed?.address)
  const past = Math.max(...counts.map(({ failures, factor }) => failures - FREE_FAILURES * factor))
  if (past > 0) await sleep(Math.min(past * DELAY_STEP_MS, MAX_DELAY_MS))
}

/** The first of its kind in a window; and no more at all from an address that fails and fails. */
function isWorthNoting(counts: readonly (LoginFailureCount & { readonly factor: number })[]): boolean {
  return counts.every(({ failures, factor }) => failures <= (factor === 1 ? 1 : MAX_FAILURES))
}

async function refuse(app: App, { sinceMs }: LoginFailureCount, address: string | undefined): Promise<void> {
  if (app.settings.isDemo) return
  if (address !== undefined) await noteRefused(app, address)
  const retryAfterS = Math.max(1, Math.ceil((sinceMs + FAILURE_WINDOW_MS - app.clock.now()) / 1000))
  throw new VersoError('too-many', 'Too many failed logins: try again later', { retryAfterS })
}

/** Once in a window for each address: to refuse must stay cheap. */
async function noteRefused(app: App, address: string): Promise<void> {
  const key = `refused ${networkOf(address)}`
  const now = app.clock.now()
  if (await findLoginFailures(app.db.reader, key, now - FAILURE_WINDOW_MS)) return
  await app.db.transaction(async (tx) => {
    const { failures } = await saveLoginFailure(tx, key, now, FAILURE_WINDOW_MS)
    if (failures === 1) await noteEvent(app, tx, { kind: 'login-refused', address })
  })
}
