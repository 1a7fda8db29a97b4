// How long logins take, and whether some take longer than others.
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
    login(app, attempt, address, undefined)

let addresses = 0
/** Each try comes from an address of its own, so that none is answered late. */
const nextAddress = () => `10.${++addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`

/** The slowest median over the fastest, of tries that take turns. */
export async function spread(attempt: Try, attempts: readonly Attempt[], samples: number): Promise<number> {
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

export const MAX_DIFFERENCE = 1.1
/** Noise makes equals look different now and then, and never those alike that are not. */
const TRIES = 6

/** Within a tenth, over so many logins of known and unknown users together. */
export async function takeEquallyLong(attempt: Try, logins: number): Promise<boolean> {
  for (let count = 0; count < TRIES; count++)
    if ((await spread(attempt, [KNOWN, UNKNOWN], logins / 2)) < MAX_DIFFERENCE) return true
  return false
}
