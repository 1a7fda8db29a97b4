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
import { appendEvent } from './events.js'
import { toNetwork } from './network.js'

export const FAILURE_WINDOW_MS = 60_000
const UNDELAYED_FAILURES = 5
const MAX_FAILURES = 30
/** One address may stand for many people. */
const ADDRESS_FACTOR = 10
const DELAY_STEP_MS = 50
const MAX_DELAY_MS = 500

/** What failures are counted under, and how many times the usual number each may have. */
type ThrottleKeys = readonly { readonly key: string; readonly factor: number }[]

export function buildThrottleKeys(username: string, address: string): ThrottleKeys {
  return [{ key: buildPairKey(username, address), factor: 1 }, ...buildAddressKeys(address)]
}

/**
 * Not the name itself: people type passwords into the wrong field, and the key is stored. Three characters tell accounts apart well
 * enough, and are too few to find out what was typed.
 */
export function buildPairKey(username: string, address: string): string {
  return `${hash('sha256', username, 'base64url').slice(0, 3)} ${toNetwork(address)}`
}

/** For what names no account. */
export function buildAddressKeys(address: string): ThrottleKeys {
  return [{ key: toNetwork(address), factor: ADDRESS_FACTOR }]
}

/** Refuses to look at a password at all where too many have been wrong. Noted if it is told where that came from. */
export async function refuseIfThrottled(app: App, keys: ThrottleKeys, address?: string): Promise<void> {
  for (const { key, factor } of keys) {
    const count = await findLoginFailures(app.db.reader, key, app.clock.now() - FAILURE_WINDOW_MS)
    if (count && count.failures >= MAX_FAILURES * factor) await refuseThrottled(app, count, address)
  }
}

/** What is noted of a failure: never what was typed. */
export interface FailedLogin {
  readonly address: string
  /** The account, if there is one of that name. */
  readonly userId: number | undefined
}

/** Counts a failure, and answers the later the more there are. */
export async function recordFailure(app: App, keys: ThrottleKeys, failed?: FailedLogin): Promise<void> {
  const now = app.clock.now()
  const counts = await app.db.transaction(async (tx) => {
    const all: (LoginFailureCount & { factor: number })[] = []
    for (const { key, factor } of keys) {
      all.push({ ...(await saveLoginFailure(tx, key, now, FAILURE_WINDOW_MS)), factor })
    }
    if (failed && shouldRecordEvent(all)) await appendEvent(app, tx, { kind: 'login-failed', ...failed })
    return all
  })
  for (const count of counts)
    if (count.failures > MAX_FAILURES * count.factor) await refuseThrottled(app, count, failed?.address)
  const excess = Math.max(...counts.map(({ failures, factor }) => failures - UNDELAYED_FAILURES * factor))
  if (excess > 0) await sleep(Math.min(excess * DELAY_STEP_MS, MAX_DELAY_MS))
}

/** The first of its kind in a window; and no more at all from an address that fails and fails. */
function shouldRecordEvent(counts: readonly (LoginFailureCount & { readonly factor: number })[]): boolean {
  return counts.every(({ failures, factor }) => failures <= (factor === 1 ? 1 : MAX_FAILURES))
}

async function refuseThrottled(
  app: App,
  { sinceMs }: LoginFailureCount,
  address: string | undefined,
): Promise<void> {
  if (app.settings.isDemo) return
  if (address !== undefined) await recordRefusedLogin(app, address)
  const retryAfterS = Math.max(1, Math.ceil((sinceMs + FAILURE_WINDOW_MS - app.clock.now()) / 1000))
  throw new VersoError('too-many', 'Too many failed logins: try again later', { retryAfterS })
}

/** Once in a window for each address: to refuse must stay cheap. */
async function recordRefusedLogin(app: App, address: string): Promise<void> {
  const key = `refused ${toNetwork(address)}`
  const now = app.clock.now()
  if (await findLoginFailures(app.db.reader, key, now - FAILURE_WINDOW_MS)) return
  await app.db.transaction(async (tx) => {
    const { failures } = await saveLoginFailure(tx, key, now, FAILURE_WINDOW_MS)
    if (failures === 1) await appendEvent(app, tx, { kind: 'login-refused', address })
  })
}
