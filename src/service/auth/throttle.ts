// Verifies passwords and limits failed logins. The database counts failures by account and address, and by address, for all nodes.
import { NECESSARY_TRANSACTION } from '../../store/engine/database.js'
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
import { listUsernameSpellings } from '../../model/catalog/auth-models.js'
import { findCredentialsByTypedName, type AccountCredentials } from '../../store/auth/accounts.js'
import { verifyPassword } from '../input/password-hash.js'

export const FAILURE_WINDOW_MS = 60_000
const UNDELAYED_FAILURES = 5
const MAX_FAILURES = 30
/** Many users may share an address, so it may have more failures. */
const ADDRESS_FACTOR = 10
const DELAY_STEP_MS = 50
const MAX_DELAY_MS = 500

/** The keys of failure counters. `factor` multiplies the limits. */
type ThrottleKeys = readonly { readonly key: string; readonly factor: number }[]

export function buildThrottleKeys(username: string, address: string): ThrottleKeys {
  return [{ key: buildPairKey(username, address), factor: 1 }, ...buildAddressKeys(address)]
}

/**
 * The stored key does not contain the username, because users type passwords into the wrong field. Three characters of a hash
 * distinguish accounts well enough, and are too few to recover the text.
 */
export function buildPairKey(username: string, address: string): string {
  return `${hash('sha256', username, 'base64url').slice(0, 3)} ${toNetwork(address)}`
}

/** Builds the keys for a failure that names no account. */
export function buildAddressKeys(address: string): ThrottleKeys {
  return [{ key: toNetwork(address), factor: ADDRESS_FACTOR }]
}

/** Throws `too-many` before a password is verified. Records an event if the address is given. */
export async function refuseIfThrottled(app: App, keys: ThrottleKeys, address?: string): Promise<void> {
  for (const { key, factor } of keys) {
    const count = await findLoginFailures(app.db.reader, key, app.clock.now() - FAILURE_WINDOW_MS)
    if (count && count.failures >= MAX_FAILURES * factor) await refuseThrottled(app, count, address)
  }
}

/** The parts of a failed login that an event contains. The typed text is never one. */
export interface FailedLogin {
  readonly address: string
  /** Undefined if no account has the name. */
  readonly userId: number | undefined
}

/** Counts a failure. The delay grows with the number of failures. */
export async function recordFailure(app: App, keys: ThrottleKeys, failed?: FailedLogin): Promise<void> {
  const now = app.clock.now()
  const counts = await app.db.transaction(async (tx) => {
    const all: (LoginFailureCount & { factor: number })[] = []
    for (const { key, factor } of keys) {
      all.push({ ...(await saveLoginFailure(tx, key, now, FAILURE_WINDOW_MS)), factor })
    }
    if (failed && shouldRecordEvent(all)) await appendEvent(app, tx, { kind: 'login-failed', ...failed })
    return all
  }, NECESSARY_TRANSACTION)
  for (const count of counts)
    if (count.failures > MAX_FAILURES * count.factor) await refuseThrottled(app, count, failed?.address)
  const excess = Math.max(...counts.map(({ failures, factor }) => failures - UNDELAYED_FAILURES * factor))
  if (excess > 0) await sleep(Math.min(excess * DELAY_STEP_MS, MAX_DELAY_MS))
}

/** True for the first failure of an account in a window, unless the address has too many failures. */
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
  throw new VersoError('too-many', 'Too many failed logins: retry after the seconds in Retry-After', {
    retryAfterS,
  })
}

/** Records one event for each address and window, because a refusal must stay cheap. */
async function recordRefusedLogin(app: App, address: string): Promise<void> {
  const key = `refused ${toNetwork(address)}`
  const now = app.clock.now()
  if (await findLoginFailures(app.db.reader, key, now - FAILURE_WINDOW_MS)) return
  await app.db.transaction(async (tx) => {
    const { failures } = await saveLoginFailure(tx, key, now, FAILURE_WINDOW_MS)
    if (failures === 1) await appendEvent(app, tx, { kind: 'login-refused', address })
  }, NECESSARY_TRANSACTION)
}
/** Returns the network that is counted as one client: an IPv4 address, or the /64 of an IPv6 address. */
export function toNetwork(address: string): string {
  if (!address.includes(':')) return address
  const unmapped = address.replace(/^::ffff:(?=\d+\.)/, '')
  if (!unmapped.includes(':')) return unmapped
  const [head = '', tail = ''] = unmapped.split('::')
  const [left, right] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)]
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`
}

export interface Credentials {
  readonly username?: unknown
  readonly password?: unknown
}

/** Returns the account if the password is right. A failure is counted, and takes as long as a success. */
export async function verifyCredentials(
  app: App,
  { username, password }: Credentials,
  address: string,
): Promise<AccountCredentials | undefined> {
  const typed = typeof username === 'string' ? username : ''
  // All spellings of a username share a counter.
  const keys = buildThrottleKeys(listUsernameSpellings(typed).at(-1) ?? '', address)
  await refuseIfThrottled(app, keys, address)
  const found = await findCredentialsByTypedName(app.db.reader, typed)
  const stored = typeof password === 'string' ? found?.passwordHash : undefined
  // Checks the limit again before the hash is computed: concurrent requests pass the first check before any has failed.
  const isRight = await verifyPassword(stored, typeof password === 'string' ? password : '', () =>
    refuseIfThrottled(app, keys, address),
  )
  if (found && isRight && !found.user.disabled) return found
  await recordFailure(app, keys, { address, userId: found?.user.id })
  return undefined
}
