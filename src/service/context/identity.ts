import type { Value } from '../../model/values/value.js'
import type { UserRow } from '../../store/auth/accounts.js'
import type { Account } from '../../wire.js'

/** Who acts. The service itself, and the command line, act as nobody: null. */
export interface UserIdentity {
  readonly id: number
  readonly version: number
  readonly username: string
  readonly name: string | null
  /** The key that it came with, which has roles of its own. */
  readonly keyId?: number
}

export function toUserIdentity({ id, version, username, name }: UserRow): UserIdentity {
  return { id, version, username, name }
}

export function toAccount({ id, version, username, name }: UserIdentity, roles: readonly string[]): Account {
  return { id, version, username, name, roles }
}

/** The actor as a reference. */
export function toUserReference(user: UserIdentity | null): Value {
  return user && { id: user.id, $version: user.version, name: user.name }
}
