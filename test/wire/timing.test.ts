// Who has no account, a wrong password or a disabled account waits as long as the others.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser, setDisabled } from '../../src/service/accounts.js'
import { login } from '../../src/service/sessions.js'
import { findLogin } from '../../src/store/accounts.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'

const SAMPLES = 15
/** Far above the noise between two equal paths, far below what a password that is not hashed saves. */
const MAX_RATIO = 2

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
const ATTEMPTS: readonly Attempt[] = [
  { username: USERNAME, password: 'wrong' },
  { username: 'nobody', password: 'wrong' },
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

/** The slowest median over the fastest; each try comes from an address of its own, so that none is answered late. */
async function spread(attempt: Try): Promise<number> {
  const times = ATTEMPTS.map((): number[] => [])
  for (let sample = 0; sample < SAMPLES; sample++) {
    for (const [index, credentials] of ATTEMPTS.entries()) {
      const began = performance.now()
      await attempt(credentials, `10.${attempt === real ? 1 : 2}.${index}.${sample}`).catch(() => undefined)
      times[index]?.push(performance.now() - began)
    }
  }
  const medians = times.map((all) => all.sort((a, b) => a - b)[Math.floor(SAMPLES / 2)] ?? 0)
  return Math.max(...medians) / Math.min(...medians)
}

test('every failed login takes as long as the others', async () => {
  expect(await spread(real)).toBeLessThan(MAX_RATIO)
})

test('a login that answers early for nobody is caught', async () => {
  expect(await spread(early)).toBeGreaterThan(MAX_RATIO)
})
