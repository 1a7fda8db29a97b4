import type { Value } from '../../model/values/value.js'
import type { UserRow } from '../../store/auth/accounts.js'
import type { Account } from '../../wire.js'

/** Who acts. The service itself, and the command line, act as nobody: null. */
export interface Actor {
  readonly id: number
  readonly version: number
  readonly username: string
  readonly name: string | null
  /** The key that it came with, which has roles of its own. */
  readonly keyId?: number
}

export function actorOf({ id, version, username, name }: UserRow): Actor {
  return { id, version, username, name }
}

export function accountOf({ id, version, username, name }: Actor, roles: readonly string[]): Account {
  return { id, version, username, name, roles }
}

/** The actor as a reference. */
export function userOf(actor: Actor | null): Value {
  return actor && { id: actor.id, $version: actor.version, name: actor.name }
}
