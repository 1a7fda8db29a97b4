import { createHash } from 'node:crypto'
import { hash, hashRaw, verify, type Options } from '@node-rs/argon2'
import { VersoError } from '../../errors.js'
import { MAX_PASSWORD_BYTES } from '../../model/catalog/auth-models.js'

// One hash takes 19 MiB and about 15 ms of a core. More at once would starve other requests.
const MAX_CONCURRENT_HASHES = 2
const MAX_QUEUED_HASHES = 64
// Argon2id, the default of the package; the prefix of every hash says so.
const ARGON2_OPTIONS: Options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

type HashQueue = (() => void)[]

let runningHashes = 0
/** Logins have their own queue, so writes of records with passwords do not delay them. */
const loginQueue: HashQueue = []
const writeQueue: HashQueue = []

/** Counts the passwords that are being hashed or wait for it. */
export function countPendingHashes(): number {
  return runningHashes + loginQueue.length + writeQueue.length
}

export async function hashPassword(password: string): Promise<string> {
  return runQueued(writeQueue, () => hash(password, ARGON2_OPTIONS))
}

/**
 * Verifies a password. Without a stored hash it takes the same time and fails. `beforehand` runs when the password reaches the front of the
 * queue, and may still refuse.
 */
export async function verifyPassword(
  stored: string | undefined,
  password: string,
  beforeVerify: () => Promise<void> = async () => undefined,
): Promise<boolean> {
  const isPossible = stored !== undefined && Buffer.byteLength(password) <= MAX_PASSWORD_BYTES
  const hashToVerify = isPossible ? stored : await getDummyHash()
  const isRight = await runQueued(loginQueue, async () => {
    await beforeVerify()
    return verify(hashToVerify, isPossible ? password : 'nobody')
  })
  return isPossible && isRight
}

/** Computes a deterministic hash of a secret and a salt that is as expensive to guess as a password. */
export async function fingerprintSecret(secret: string, salt: string): Promise<string> {
  const bytes = createHash('sha256').update(salt).digest()
  return (await runQueued(writeQueue, () => hashRaw(secret, { ...ARGON2_OPTIONS, salt: bytes }))).toString(
    'base64url',
  )
}

let cachedDummyHash: string | undefined

/** Computed before the first login, so that the first login of an unknown user takes no longer than others. */
export async function getDummyHash(): Promise<string> {
  cachedDummyHash ??= await hashPassword('the password of nobody')
  return cachedDummyHash
}

async function runQueued<T>(queue: HashQueue, run: () => Promise<T>): Promise<T> {
  if (runningHashes >= MAX_CONCURRENT_HASHES) {
    if (queue.length >= MAX_QUEUED_HASHES)
      throw new VersoError(
        'too-many',
        'Too many concurrent password checks: retry after the seconds in Retry-After; nothing was changed',
        { retryAfterS: 1 },
      )
    await new Promise<void>((resolve) => queue.push(resolve))
  } else runningHashes++
  try {
    return await run()
  } finally {
    // Alternates between the queues, so that neither waits for the other to empty.
    const [first, second] = queue === loginQueue ? [writeQueue, loginQueue] : [loginQueue, writeQueue]
    const next = first.shift() ?? second.shift()
    if (next) next()
    else runningHashes--
  }
}
