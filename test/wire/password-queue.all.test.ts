// Password hashing is expensive: two run concurrently, 64 wait, the rest is rejected.
import { beforeAll, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { hashPassword, verifyPassword } from '../../src/service/input/password-hash.js'
import { startService } from '../targets.js'
import { expectError, login } from './exchange.js'

const AT_ONCE = 2
const WAITING = 64
const CALLS = 100
const PASSWORD = 'one of a hundred'

let stored: string
beforeAll(async () => {
  stored = await hashPassword(PASSWORD)
})

type Verify = typeof verifyPassword

/** Holds many callers until it is opened. */
function makeGate() {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  let [active, peak] = [0, 0]
  const pass = async () => {
    active++
    peak = Math.max(peak, active)
    await opened
    // Gives other callers the chance to overlap with this one.
    await new Promise(setImmediate)
    active--
  }
  return { open, pass, active: () => active, peak: () => peak }
}

/** A hundred concurrent calls: how many ran, how many were rejected, and how many succeeded in the end. */
async function flood(verify: Verify) {
  const gate = makeGate()
  const errors: unknown[] = []
  const answers = Array.from({ length: CALLS }, () =>
    verify(stored, PASSWORD, gate.pass).catch((error: unknown) => {
      errors.push(error)
      return false
    }),
  )
  await new Promise(setImmediate)
  const [atWork, rejected] = [gate.active(), errors.length]
  gate.open()
  const right = (await Promise.all(answers)).filter(Boolean).length
  return { atWork, rejected, peak: gate.peak(), right, errors }
}

test('of 100 concurrent password checks two run, 64 wait and succeed, the rest is rejected with too-many', async () => {
  const { errors, ...counts } = await flood(verifyPassword)
  expect(counts).toEqual({
    ...{ atWork: AT_ONCE, peak: AT_ONCE },
    ...{ right: AT_ONCE + WAITING, rejected: CALLS - AT_ONCE - WAITING },
  })
  for (const error of errors) {
    expect(error).toBeInstanceOf(VersoError)
    expect(error).toMatchObject({ kind: 'too-many', details: { retryAfterS: 1 } })
  }
})

test('a second flood of password checks has the same result: rejected ones leave nothing behind', async () => {
  expect(await flood(verifyPassword)).toMatchObject({
    atWork: AT_ONCE,
    peak: AT_ONCE,
    right: AT_ONCE + WAITING,
  })
})

test('the mutant without a queue runs all password checks at once, and is caught', async () => {
  const unbounded: Verify = async (_, __, beforehand) => {
    await beforehand?.()
    return true
  }
  expect(await flood(unbounded)).toMatchObject({ atWork: CALLS, peak: CALLS, rejected: 0 })
})

test('a login during a full password queue is 429 with Retry-After, and is not a failed login', async () => {
  const service = await startService('sqlite')
  try {
    const gate = makeGate()
    const waiting = Array.from({ length: AT_ONCE + WAITING }, () =>
      verifyPassword(stored, PASSWORD, gate.pass),
    )
    const rejected = await login(service.url)
    expectError(rejected, 429, 'too-many')
    expect(rejected.headers['retry-after']).toBe('1')
    gate.open()
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([true]))
    expect((await login(service.url)).status).toBe(200)
    expect(await service.app.db.reader.all('select key from verso_login_failure')).toEqual([])
  } finally {
    await service.close()
  }
})

test('hashing for records with passwords does not block logins', async () => {
  const service = await startService('sqlite')
  try {
    const written = Array.from({ length: CALLS }, () => hashPassword(PASSWORD).catch(() => 'refused'))
    expect((await login(service.url)).status).toBe(200)
    expect((await Promise.all(written)).filter((each) => each === 'refused')).toHaveLength(
      CALLS - AT_ONCE - WAITING,
    )
  } finally {
    await service.close()
  }
})
