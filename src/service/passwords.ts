import { hash, verify, type Options } from '@node-rs/argon2'
import { Refusal } from '../errors.js'
import { MAX_PASSWORD_BYTES } from '../model/system.js'

// A hash takes 19 MiB and about 15 ms of a core: more at once would starve everything else.
const AT_ONCE = 2
const MAX_WAITING = 64
// Argon2id, the default of the package; the prefix of every hash says so.
const ARGON2: Options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

let running = 0
const waiting: (() => void)[] = []

export async function hashPassword(password: string): Promise<string> {
  return inTurn(() => hash(password, ARGON2))
}

/** Without a stored hash it takes as long, and fails. */
export async function verifyPassword(stored: string | undefined, password: string): Promise<boolean> {
  const isPossible = stored !== undefined && Buffer.byteLength(password) <= MAX_PASSWORD_BYTES
  const against = isPossible ? stored : await dummyHash()
  const isRight = await inTurn(() => verify(against, isPossible ? password : 'nobody'))
  return isPossible && isRight
}

let dummy: string | undefined

/** Made before the first login, so that the first one for nobody takes no longer than the others. */
export async function dummyHash(): Promise<string> {
  dummy ??= await hashPassword('the password of nobody')
  return dummy
}

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= AT_ONCE) {
    if (waiting.length >= MAX_WAITING)
      throw new Refusal('too-many', 'Too many logins at once', { retryAfterS: 1 })
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else running++
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else running--
  }
}
