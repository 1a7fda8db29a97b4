// A user name and a password with every request, without paying for a hash each time, and without keeping the password.
import { createHmac, randomBytes } from 'node:crypto'
import { listUsernameSpellings } from '../../model/catalog/auth-models.js'
import {
  findCredentialsByTypedName,
  findCredentials,
  type AccountCredentials,
} from '../../store/auth/accounts.js'
import { toUserIdentity, type UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import { verifyCredentials, type Credentials } from './password-proof.js'

const PROOF_TTL_MS = 5 * 60_000
const MAX_CACHED_PROOFS = 1_000

interface CachedPasswordProof {
  /** The hash that the password was right for: with another password there is another hash. */
  readonly passwordHash: string
  readonly untilMs: number
}

/** Who has proved their password to this process a moment ago. What is remembered is a digest under a key that never leaves it. */
export class BasicAuthCache {
  readonly #key = randomBytes(32)
  readonly #proofs = new Map<string, CachedPasswordProof>()
  readonly #pendingVerifications = new Map<string, Promise<AccountCredentials | undefined>>()

  constructor(private readonly app: App) {}

  /** Undefined if the name or the password is wrong. The account is looked up each time: a disabled one is out at once. */
  async authenticate(username: string, password: string, address: string): Promise<UserIdentity | undefined> {
    const { app } = this
    const found = await findCredentialsByTypedName(app.db.reader, username)
    // Each unknown name has a proof of its own: otherwise one hash and one failure would stand for all of them.
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
    // The look at the password may have begun before this request came, and the account may have changed since.
    const current = login && (await findCredentials(app.db.reader, login.user.username))
    if (!login || !current || current.user.disabled || current.passwordHash !== login.passwordHash)
      return undefined
    this.#cacheProof(digest, login.passwordHash)
    return toUserIdentity(login.user)
  }

  /** Many requests at once with the same password are one look at it. */
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
