import type { Permissions } from '../../model/access/permissions.js'
import type { Queryable } from '../../store/engine/database.js'
import type { UserIdentity } from './identity.js'

/** The user of a request and their permissions. */
export interface Principal {
  /** Null for the service itself and the command line. */
  readonly user: UserIdentity | null
  /** Undefined if everything is permitted. */
  readonly permissions: Permissions | undefined
  readonly roles: readonly string[]
  /** The version that `permissions` belong to; the service itself has none. */
  readonly permissionsVersion?: number | undefined
  /** Present if a session or an API key authenticated the request. */
  readonly access?: Access
  /** Permits user names that earlier releases accepted and this one rejects. */
  readonly allowsLegacyUsernames?: true
}

/** Lets a write detect that the session, key or account of its user ended after authentication. */
export interface Access {
  /** The number of ended sessions, keys and accounts at authentication. */
  readonly revocations: number
  /** True while the session or key exists, the key has not expired and the account is enabled. Authentication checks the expiry of a session. */
  readonly isOpen: (db: Queryable) => Promise<boolean>
}

export const SERVICE_PRINCIPAL: Principal = { user: null, permissions: undefined, roles: [] }

/** Creates the users that an import needs. */
export const IMPORT_PRINCIPAL: Principal = { ...SERVICE_PRINCIPAL, allowsLegacyUsernames: true }
