import type { UserRow } from '../../store/auth/accounts.js'
import type { Account } from '../../wire.js'

/** An authenticated user. The service itself and the command line have none: null. */
export interface UserIdentity {
  readonly id: number
  readonly version: number
  readonly username: string
  readonly name: string | null
  /** The id of the API key that authenticated the request. A key has its own roles. */
  readonly keyId?: number
}

export function toUserIdentity({ id, version, username, name }: UserRow): UserIdentity {
  return { id, version, username, name }
}

export function toAccount({ id, version, username, name }: UserIdentity, roles: readonly string[]): Account {
  return { id, version, username, name, roles }
}
