import { createHash } from 'node:crypto'
import { hash, hashRaw, verify, type Options } from '@node-rs/argon2'
import { VersoError } from '../../errors.js'
import { MAX_PASSWORD_BYTES } from '../../model/catalog/auth-models.js'

// A hash takes 19 MiB and about 15 ms of a core: more at once would starve everything else.
const AT_ONCE = 2
const MAX_WAITING = 64
// Argon2id, the default of the package; the prefix of every hash says so.
const ARGON2: Options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

type Queue = (() => void)[]

let running = 0
/** Logins have a queue of their own: whoever writes records with passwords keeps nobody from logging in. */
const logins: Queue = []
const writes: Queue = []

/** How many passwords are being hashed, or wait for it. */
export function hashesPending(): number {
  return running + logins.length + writes.length
}

export async function hashPassword(password: string): Promise<string> {
  return inTurn(writes, () => hash(password, ARGON2))
}

/** Without a stored hash it takes as long, and fails. `beforehand` runs when its turn has come, and may still refuse. */
export async function verifyPassword(
  stored: string | undefined,
  password: string,
  beforehand: () => Promise<void> = async () => undefined,
): Promise<boolean> {
  const isPossible = stored !== undefined && Buffer.byteLength(password) <= MAX_PASSWORD_BYTES
  const against = isPossible ? stored : await dummyHash()
  const isRight = await inTurn(logins, async () => {
    await beforehand()
    return verify(against, isPossible ? password : 'nobody')
  })
  return isPossible && isRight
}

/** The same for the same secret and salt, and as dear to guess as a password. */
export async function fingerprint(secret: string, salt: string): Promise<string> {
  const bytes = createHash('sha256').update(salt).digest()
  return (await inTurn(writes, () => hashRaw(secret, { ...ARGON2, salt: bytes }))).toString('base64url')
}

let dummy: string | undefined

/** Made before the first login, so that the first one for nobody takes no longer than the others. */
export async function dummyHash(): Promise<string> {
  dummy ??= await hashPassword('the password of nobody')
  return dummy
}

async function inTurn<T>(queue: Queue, work: () => Promise<T>): Promise<T> {
  if (running >= AT_ONCE) {
    if (queue.length >= MAX_WAITING)
      throw new VersoError('too-many', 'Too many passwords at once', { retryAfterS: 1 })
    await new Promise<void>((resolve) => queue.push(resolve))
  } else running++
  try {
    return await work()
  } finally {
    // In turns, so that neither queue waits for the end of the other.
    const [first, second] = queue === logins ? [writes, logins] : [logins, writes]
    const next = first.shift() ?? second.shift()
    if (next) next()
    else running--
  }
}
