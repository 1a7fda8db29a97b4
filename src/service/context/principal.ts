import type { Catalog } from '../../model/catalog/catalog.js'
import type { Permissions } from '../../model/access/permissions.js'
import type { Visibility } from '../../model/query/visibility.js'
import type { Queryable } from '../../store/engine/database.js'
import type { UserIdentity } from './identity.js'

/** Who acts, and what they may do. */
export interface Principal {
  /** The service itself, and the command line, act as nobody. */
  readonly user: UserIdentity | null
  /** Undefined for those who may do everything. */
  readonly permissions: Permissions | undefined
  /** The names of their roles. */
  readonly roles: readonly string[]
  /** What it was worked out under; the service itself has none. */
  readonly permissionsVersion?: number | undefined
  /** Of whoever came with a session or a key. */
  readonly access?: Access
  /** An account may be given any name that accounts of earlier releases could have. */
  readonly allowsLegacyUsernames?: true
}

/** By this a write finds out that its sender has been shut out since they were looked up. */
export interface Access {
  /** How many sessions, keys and accounts had ended when they were looked up. */
  readonly revocations: number
  /** True while the session or key exists, the key has not expired and the account is enabled. Authentication checks the expiry of a session. */
  readonly isOpen: (db: Queryable) => Promise<boolean>
}

/** The service itself. */
export const SERVICE_PRINCIPAL: Principal = { user: null, permissions: undefined, roles: [] }

/** The service as it makes the users that an import names. */
export const IMPORT_PRINCIPAL: Principal = { ...SERVICE_PRINCIPAL, allowsLegacyUsernames: true }

/** The models as the caller sees them. */
export function getVisibility(app: { readonly catalog: Catalog }, { permissions }: Principal): Visibility {
  return permissions ?? app.catalog
}
