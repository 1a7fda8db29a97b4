// A login takes equally long with an unknown user, a wrong password and a disabled account.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser, setUserDisabled } from '../../src/service/auth/accounts.js'
import { findCredentials } from '../../src/store/auth/accounts.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import {
  KNOWN,
  loginTo,
  MAX_DIFFERENCE,
  spread,
  takeEquallyLong,
  UNKNOWN,
  type Attempt,
  type Try,
} from './login-times.js'

/** For each kind of attempt. */
const SAMPLES = 9
/** Far above the noise between two equal paths, far below what skipping the hash saves. */
const MAX_RATIO = 2
/** `timing-400.all.test.ts` runs more. */
const LOGINS = 100

let service: Service
let real: Try
beforeAll(async () => {
  service = await startService('sqlite', { isNew: true })
  real = loginTo(service)
  await addUser(service.app, { username: 'gone', password: PASSWORD, roles: ['editor'] })
  await setUserDisabled(service.app, 'gone', true)
})
afterAll(() => service.close())

const ATTEMPTS: readonly Attempt[] = [
  KNOWN,
  UNKNOWN,
  { username: 'no name at all', password: 'wrong' },
  { username: 'gone', password: PASSWORD },
  { username: USERNAME, password: 'x'.repeat(10_000) },
]

/** The mutant: looks the account up first, and returns immediately if there is none. */
const early: Try = async (attempt, address) => {
  if (await findCredentials(service.app.db.reader, attempt.username)) await real(attempt, address)
}

/** A subtler mutant: takes a little longer for existing accounts, in proportion to the speed of this machine. */
const later: Try = async (attempt, address) => {
  const began = performance.now()
  await real(attempt, address).catch(() => undefined)
  if (attempt.username !== USERNAME) return
  const until = performance.now() + (performance.now() - began) / 3
  while (performance.now() < until) await findCredentials(service.app.db.reader, attempt.username)
}

test('every kind of failed login takes equally long', async () => {
  expect(await spread(real, ATTEMPTS, SAMPLES)).toBeLessThan(MAX_RATIO)
})

test('the mutant login that answers early for unknown users is caught', async () => {
  expect(await spread(early, ATTEMPTS, SAMPLES)).toBeGreaterThan(MAX_RATIO)
})

test(`a login takes equally long for known and unknown users, within a tenth, over ${LOGINS} logins`, async () => {
  expect(await takeEquallyLong(real, LOGINS)).toBe(true)
})

test('the mutant login that takes a third longer for known users is caught', async () => {
  expect(await spread(later, [KNOWN, UNKNOWN], LOGINS / 2)).toBeGreaterThan(MAX_DIFFERENCE)
})
