// Who has no account, a wrong password or a disabled account waits as long as the others.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser, setDisabled } from '../../src/service/accounts/accounts.js'
import { login } from '../../src/service/accounts/sessions.js'
import { findLogin } from '../../src/store/accounts.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'

/** Of each kind. */
const SAMPLES = 15
/** Far above the noise between two equal paths, far below what a password that is not hashed saves. */
const MAX_RATIO = 2
/** Of known and unknown users together. */
const LOGINS = 400
const MAX_DIFFERENCE = 1.1
/** Noise makes equals look different now and then, and never those alike that are not. */
const TRIES = 3

let service: Service
beforeAll(async () => {
  service = await startService('sqlite')
  await addUser(service.app, { username: 'gone', password: PASSWORD, roles: ['editor'] })
  await setDisabled(service.app, 'gone', true)
})
afterAll(() => service.close())

interface Attempt {
  readonly username: string
  readonly password: string
}
const KNOWN = { username: USERNAME, password: 'wrong' }
const UNKNOWN = { username: 'nobody', password: 'wrong' }
const ATTEMPTS: readonly Attempt[] = [
  KNOWN,
  UNKNOWN,
  { username: 'no name at all', password: 'wrong' },
  { username: 'gone', password: PASSWORD },
  { username: USERNAME, password: 'x'.repeat(10_000) },
]

type Try = (attempt: Attempt, address: string) => Promise<unknown>

const real: Try = (attempt, address) => login(service.app, attempt, address, undefined)

/** The twin: looks for the account first, and has nothing to do if there is none. */
const early: Try = async (attempt, address) => {
  if (await findLogin(service.app.db.reader, attempt.username)) await real(attempt, address)
}

/** The finer twin: has a little more to do for those who have an account. */
const later: Try = async (attempt, address) => {
  await real(attempt, address).catch(() => undefined)
  if (attempt.username !== USERNAME) return
  const until = performance.now() + 20
  while (performance.now() < until) await findLogin(service.app.db.reader, attempt.username)
}

let addresses = 0
/** Each try comes from an address of its own, so that none is answered late. */
const nextAddress = () => `10.${++addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`

/** The slowest median over the fastest, of tries that take turns. */
async function spread(attempt: Try, attempts: readonly Attempt[], samples: number): Promise<number> {
  const times = attempts.map((): number[] => [])
  for (let sample = 0; sample < samples; sample++) {
    // Now one goes first, now the other: neither always follows the same.
    const turns = [...attempts.entries()]
    for (const [index, credentials] of sample % 2 === 0 ? turns : turns.reverse()) {
      const began = performance.now()
      await attempt(credentials, nextAddress()).catch(() => undefined)
      times[index]?.push(performance.now() - began)
    }
  }
  const medians = times.map((all) => all.sort((a, b) => a - b)[Math.floor(samples / 2)] ?? 0)
  return Math.max(...medians) / Math.min(...medians)
}

test('every failed login takes as long as the others', async () => {
  expect(await spread(real, ATTEMPTS, SAMPLES)).toBeLessThan(MAX_RATIO)
})

test('a login that answers early for nobody is caught', async () => {
  expect(await spread(early, ATTEMPTS, SAMPLES)).toBeGreaterThan(MAX_RATIO)
})

test('known and unknown users wait equally long, within a tenth, over 400 logins', async () => {
  let least = Infinity
  for (let count = 0; count < TRIES && least > MAX_DIFFERENCE; count++)
    least = Math.min(least, await spread(real, [KNOWN, UNKNOWN], LOGINS / 2))
  expect(least).toBeLessThan(MAX_DIFFERENCE)
}, 240_000)

test('a login that takes twenty milliseconds longer for those who are known is caught', async () => {
  expect(await spread(later, [KNOWN, UNKNOWN], LOGINS / 8)).toBeGreaterThan(MAX_DIFFERENCE)
}, 240_000)
