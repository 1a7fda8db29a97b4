// Who has no account, a wrong password or a disabled account waits as long as the others.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser, setDisabled } from '../../src/service/auth/accounts.js'
import { findLogin } from '../../src/store/auth/accounts.js'
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

/** Of each kind. */
const SAMPLES = 9
/** Far above the noise between two equal paths, far below what a password that is not hashed saves. */
const MAX_RATIO = 2
/** `timing.long.test.ts` tries more. */
const LOGINS = 100

let service: Service
let real: Try
beforeAll(async () => {
  service = await startService('sqlite', { isNew: true })
  real = loginTo(service)
  await addUser(service.app, { username: 'gone', password: PASSWORD, roles: ['editor'] })
  await setDisabled(service.app, 'gone', true)
})
afterAll(() => service.close())

const ATTEMPTS: readonly Attempt[] = [
  KNOWN,
  UNKNOWN,
  { username: 'no name at all', password: 'wrong' },
  { username: 'gone', password: PASSWORD },
  { username: USERNAME, password: 'x'.repeat(10_000) },
]

/** The twin: looks for the account first, and has nothing to do if there is none. */
const early: Try = async (attempt, address) => {
  if (await findLogin(service.app.db.reader, attempt.username)) await real(attempt, address)
}

/** The finer twin: has a little more to do for those who have an account, however slow this machine is. */
const later: Try = async (attempt, address) => {
  const began = performance.now()
  await real(attempt, address).catch(() => undefined)
  if (attempt.username !== USERNAME) return
  const until = performance.now() + (performance.now() - began) / 3
  while (performance.now() < until) await findLogin(service.app.db.reader, attempt.username)
}

test('every failed login takes as long as the others', async () => {
  expect(await spread(real, ATTEMPTS, SAMPLES)).toBeLessThan(MAX_RATIO)
})

test('a login that answers early for nobody is caught', async () => {
  expect(await spread(early, ATTEMPTS, SAMPLES)).toBeGreaterThan(MAX_RATIO)
})

test(`known and unknown users wait equally long, within a tenth, over ${LOGINS} logins`, async () => {
  expect(await takeEquallyLong(real, LOGINS)).toBe(true)
}, 240_000)

test('a login that takes a third longer for those who are known is caught', async () => {
  expect(await spread(later, [KNOWN, UNKNOWN], LOGINS / 2)).toBeGreaterThan(MAX_DIFFERENCE)
}, 240_000)
