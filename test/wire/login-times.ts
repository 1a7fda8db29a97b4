// Measures how long logins take, and compares them.
import { login } from '../../src/service/auth/sessions.js'
import { USERNAME, type Service } from '../targets.js'

export interface Attempt {
  readonly username: string
  readonly password: string
}
export const KNOWN = { username: USERNAME, password: 'wrong' }
export const UNKNOWN = { username: 'nobody', password: 'wrong' }

export type Try = (attempt: Attempt, address: string) => Promise<unknown>

export const loginTo =
  ({ app }: Service): Try =>
  (attempt, address) =>
    login(app, attempt, { address })

let addresses = 0
/** A new address for each attempt, so that none is delayed. */
const nextAddress = () => `10.${++addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`

/** The slowest median divided by the fastest, with attempts in turn. */
export async function spread(attempt: Try, attempts: readonly Attempt[], samples: number): Promise<number> {
  const times = attempts.map((): number[] => [])
  for (let sample = 0; sample < samples; sample++) {
    // Alternates the order, so that no attempt always follows the same one.
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

export const MAX_DIFFERENCE = 1.1
/** Noise makes equal times differ now and then, but never makes different times equal. */
const TRIES = 6

/** True if logins of known and unknown users differ by less than a tenth. */
export async function takeEquallyLong(attempt: Try, logins: number): Promise<boolean> {
  for (let count = 0; count < TRIES; count++)
    if ((await spread(attempt, [KNOWN, UNKNOWN], logins / 2)) < MAX_DIFFERENCE) return true
  return false
}
