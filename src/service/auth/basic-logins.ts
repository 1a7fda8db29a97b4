// HTTP Basic authentication: caches verified passwords, so that not every request computes a hash, without storing the password.
import { createHmac, randomBytes } from 'node:crypto'
import { listUsernameSpellings } from '../../model/catalog/auth-models.js'
import {
  findCredentialsByTypedName,
  findCredentials,
  type AccountCredentials,
} from '../../store/auth/accounts.js'
import { toUserIdentity, type UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import { verifyCredentials, type Credentials } from './throttle.js'

const PROOF_TTL_MS = 5 * 60_000
const MAX_CACHED_PROOFS = 1_000

interface CachedPasswordProof {
  /** The stored hash that the password matched. A new password has another hash. */
  readonly passwordHash: string
  readonly untilMs: number
}

/** Caches digests of verified passwords. The key of the digests never leaves the process. */
export class BasicAuthCache {
  readonly #key = randomBytes(32)
  readonly #proofs = new Map<string, CachedPasswordProof>()
  readonly #pendingVerifications = new Map<string, Promise<AccountCredentials | undefined>>()

  constructor(private readonly app: App) {}

  /** Returns undefined if the username or the password is wrong. Reads the user each time, so disabling it works at once. */
  async authenticate(username: string, password: string, address: string): Promise<UserIdentity | undefined> {
    const { app } = this
    const found = await findCredentialsByTypedName(app.db.reader, username)
    // Each unknown username has a digest of its own; otherwise all of them would share one verification and one failure.
    const name = found?.user.username ?? listUsernameSpellings(username).at(-1) ?? ''
    const digest = this.#computeDigest(name, password)
    const proof = this.#proofs.get(digest)
    const isProved =
      found !== undefined &&
      proof?.passwordHash === found.passwordHash &&
      app.clock.now() < proof.untilMs &&
      !found.user.disabled
    if (isProved) return toUserIdentity(found.user)
    const login = await this.#verifyOnce(digest, { username, password }, address)
    // The verification may have started before this request, and the user may have changed since.
    const current = login && (await findCredentials(app.db.reader, login.user.username))
    if (!login || !current || current.user.disabled || current.passwordHash !== login.passwordHash)
      return undefined
    this.#cacheProof(digest, login.passwordHash)
    return toUserIdentity(login.user)
  }

  /** Concurrent requests with the same password share one verification. */
  async #verifyOnce(
    digest: string,
    credentials: Credentials,
    address: string,
  ): Promise<AccountCredentials | undefined> {
    const id = `${digest} ${address}`
    const running = this.#pendingVerifications.get(id) ?? verifyCredentials(this.app, credentials, address)
    this.#pendingVerifications.set(id, running)
    try {
      return await running
    } finally {
      this.#pendingVerifications.delete(id)
    }
  }

  #cacheProof(digest: string, passwordHash: string): void {
    this.#proofs.delete(digest)
    const [oldest] = this.#proofs.keys()
    if (oldest !== undefined && this.#proofs.size >= MAX_CACHED_PROOFS) this.#proofs.delete(oldest)
    this.#proofs.set(digest, { passwordHash, untilMs: this.app.clock.now() + PROOF_TTL_MS })
  }

  #computeDigest(name: string, password: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([name, password]))
      .digest('base64url')
  }
}
