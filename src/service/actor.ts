import type { Value } from '../model/value.js'
import type { UserRow } from '../store/accounts.js'
import type { Account } from '../wire.js'

/** Who acts. The service itself, and the command line, act as nobody: null. */
export interface Actor {
  readonly id: number
  readonly version: number
  readonly username: string
  readonly name: string | null
  readonly admin: boolean
}

export function actorOf({ id, version, username, name, admin }: UserRow): Actor {
  return { id, version, username, name, admin }
}

export function accountOf({ id, version, username, name, admin }: Actor): Account {
  return { id, version, username, name, roles: admin ? ['administrator'] : [] }
}

/** The actor as a reference. */
export function userOf(actor: Actor | null): Value {
  return actor && { id: actor.id, $version: actor.version, name: actor.name }
}
