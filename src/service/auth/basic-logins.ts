// A user name and a password with every request, without paying for a hash each time, and without keeping the password.
import { createHmac, randomBytes } from 'node:crypto'
import { listUsernameSpellings } from '../../model/catalog/auth-models.js'
import {
  findCredentialsByTypedName,
  findCredentials,
  type AccountCredentials,
} from '../../store/auth/accounts.js'
import { actorOf, type Actor } from '../context/identity.js'
import type { App } from '../context/app.js'
import { provePassword, type Credentials } from './password-proof.js'

const REMEMBERED_MS = 5 * 60_000
const MAX_REMEMBERED = 1_000

interface Proof {
  /** The hash that the password was right for: with another password there is another hash. */
  readonly passwordHash: string
  readonly untilMs: number
}

/** Who has proved their password to this process a moment ago. What is remembered is a digest under a key that never leaves it. */
export class BasicLogins {
  readonly #key = randomBytes(32)
  readonly #proofs = new Map<string, Proof>()
  readonly #running = new Map<string, Promise<AccountCredentials | undefined>>()

  constructor(private readonly app: App) {}

  /** Undefined if the name or the password is wrong. The account is looked up each time: a disabled one is out at once. */
  async authenticate(username: string, password: string, address: string): Promise<Actor | undefined> {
    const { app } = this
    const found = await findCredentialsByTypedName(app.db.reader, username)
    // Each unknown name has a proof of its own: otherwise one hash and one failure would stand for all of them.
    const name = found?.user.username ?? listUsernameSpellings(username).at(-1) ?? ''
    const digest = this.#digestOf(name, password)
    const proof = this.#proofs.get(digest)
    const isProved =
      found !== undefined &&
      proof?.passwordHash === found.passwordHash &&
      app.clock.now() < proof.untilMs &&
      !found.user.disabled
    if (isProved) return actorOf(found.user)
    const login = await this.#prove(digest, { username, password }, address)
    // The look at the password may have begun before this request came, and the account may have changed since.
    const still = login && (await findCredentials(app.db.reader, login.user.username))
    if (!login || !still || still.user.disabled || still.passwordHash !== login.passwordHash) return undefined
    this.#remember(digest, login.passwordHash)
    return actorOf(login.user)
  }

  /** Many requests at once with the same password are one look at it. */
  async #prove(
    digest: string,
    credentials: Credentials,
    address: string,
  ): Promise<AccountCredentials | undefined> {
    const id = `${digest} ${address}`
    const running = this.#running.get(id) ?? provePassword(this.app, credentials, address)
    this.#running.set(id, running)
    try {
      return await running
    } finally {
      this.#running.delete(id)
    }
  }

  #remember(digest: string, passwordHash: string): void {
    this.#proofs.delete(digest)
    const [oldest] = this.#proofs.keys()
    if (oldest !== undefined && this.#proofs.size >= MAX_REMEMBERED) this.#proofs.delete(oldest)
    this.#proofs.set(digest, { passwordHash, untilMs: this.app.clock.now() + REMEMBERED_MS })
  }

  #digestOf(name: string, password: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([name, password]))
      .digest('base64url')
  }
}
