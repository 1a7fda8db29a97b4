// Loads the roles and permissions of a user, and caches them until the permissions version changes.
import { VersoError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import { META_MODEL } from '../../model/catalog/system-models.js'
import { API_KEY_MODEL, PERMISSION_MODEL, ROLE_MODEL } from '../../model/catalog/auth-models.js'
import type { Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import { ID_FIELD, buildStep } from '../../model/query/path.js'
import { buildGrant, parsePermission, type Permission } from '../../model/access/permission-record.js'
import { Permissions, type Grant } from '../../model/access/permissions.js'
import { listIds } from '../../model/values/value.js'
import { toValues } from '../../model/definition/record-values.js'
import type { Database } from '../../store/engine/database.js'
import { readPermissionsVersion } from '../../store/auth/permissions-version.js'
import * as store from '../../store/records/records.js'
import type { Tables } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import type { UserIdentity } from './identity.js'
import type { Principal } from './principal.js'

interface AuthorizerApp {
  readonly catalog: Catalog
  readonly db: Database
  readonly tables: Tables
}

const MAX_CACHED_PRINCIPALS = 10_000
/** Above the number of roles and permissions that a user has in practice. */
const MAX_READ_ROWS = 10_000
const MAX_LOAD_ATTEMPTS = 10

interface CachedPrincipal {
  readonly permissionsVersion: number
  readonly principal: Promise<Omit<Principal, 'user' | 'permissionsVersion'>>
}

export class Authorizer {
  readonly #cache = new Map<string, CachedPrincipal>()

  constructor(private readonly app: AuthorizerApp) {}

  /** Reads the permissions version unless the request has just read it. */
  async resolvePrincipal(user: UserIdentity, permissionsVersion?: number): Promise<Principal> {
    const currentVersion = permissionsVersion ?? (await readPermissionsVersion(this.app.db.reader))
    const key = `${user.id} ${user.keyId ?? ''}`
    const cached = this.#cache.get(key)
    if (cached?.permissionsVersion === currentVersion)
      return { user, permissionsVersion: currentVersion, ...(await cached.principal) }
    const entry: CachedPrincipal = {
      permissionsVersion: currentVersion,
      principal: this.#loadConsistent(user, currentVersion),
    }
    this.#insert(key, entry)
    try {
      return { user, permissionsVersion: currentVersion, ...(await entry.principal) }
    } catch (error) {
      if (this.#cache.get(key) === entry) this.#cache.delete(key)
      throw error
    }
  }

  #insert(key: string, entry: CachedPrincipal): void {
    this.#cache.delete(key)
    const [oldest] = this.#cache.keys()
    if (oldest !== undefined && this.#cache.size >= MAX_CACHED_PRINCIPALS) this.#cache.delete(oldest)
    this.#cache.set(key, entry)
  }

  /** Loads with several statements, and repeats them if the permissions version changed in between. */
  async #loadConsistent(
    user: UserIdentity,
    permissionsVersion: number,
  ): Promise<Omit<Principal, 'user' | 'permissionsVersion'>> {
    let before = permissionsVersion
    for (let attempt = 1; attempt <= MAX_LOAD_ATTEMPTS; attempt++) {
      const principal = await this.#load(user)
      const after = await readPermissionsVersion(this.app.db.reader)
      if (after === before) return principal
      before = after
    }
    throw new VersoError(
      'busy',
      'Permissions changed while this request was authorized: retry; nothing was changed',
      { retryAfterS: 1 },
    )
  }

  async #load(identity: UserIdentity): Promise<Omit<Principal, 'user' | 'permissionsVersion'>> {
    const { catalog, db, tables } = this.app
    const user = await store.readById(db.reader, tables.of(catalog.user), identity.id)
    const roles = await this.#readRoles(user, identity.keyId)
    const names = roles.map((role) => String(role['name']))
    if (roles.some((role) => role['admin'] === true)) return { permissions: undefined, roles: names }
    // Related records of the user contain only ids: a change of their fields does not change the permissions version.
    const userValues = user ? { id: user.id, ...toValues(catalog.user, user) } : {}
    const permissions = await this.#readPermissions(roles.map(({ id }) => id))
    const modelPermissions: Permissions = new Permissions(catalog, (model): readonly Grant[] => [
      ...permissions.flatMap((each) => buildGrant(catalog, model, each, userValues) ?? []),
      ...listBuiltInGrants(catalog, model, (other) => modelPermissions.of(other).isVisible),
    ])
    return { permissions: modelPermissions, roles: names }
  }

  /** An API key has only those of its roles that its user has, too. A user who loses a role loses it in all their keys. */
  async #readRoles(user: WireRecord | undefined, keyId: number | undefined): Promise<WireRecord[]> {
    const own = listIds(user?.['roles'])
    if (keyId === undefined) return this.#readRecords(ROLE_MODEL, own)
    const { catalog, db, tables } = this.app
    const key = await store.readById(db.reader, tables.of(catalog.get(API_KEY_MODEL)), keyId)
    const scope = new Set(listIds(key?.['roles']))
    return this.#readRecords(
      ROLE_MODEL,
      own.filter((id) => scope.has(id)),
    )
  }

  async #readPermissions(roles: readonly number[]): Promise<Permission[]> {
    const model = this.app.catalog.get(PERMISSION_MODEL)
    const role = model.fields.get('role')
    if (!role) return []
    const steps = [buildStep(this.app.catalog, model, role)]
    const where: Criteria = { kind: 'comparison', steps, field: ID_FIELD, operator: 'in', values: roles }
    return (await this.#scan(model, where)).map(parsePermission)
  }

  async #readRecords(name: string, ids: readonly number[]): Promise<WireRecord[]> {
    const where: Criteria = { kind: 'comparison', steps: [], field: ID_FIELD, operator: 'in', values: ids }
    return this.#scan(this.app.catalog.get(name), where)
  }

  async #scan(model: Model, where: Criteria): Promise<WireRecord[]> {
    const { db, tables } = this.app
    return store.scanById(db.reader, tables.of(model), { after: 0, limit: MAX_READ_ROWS, where })
  }
}

/** Grants that every user has, independent of roles. Users may read the meta records of the models that are visible to them, and of no others. */
function listBuiltInGrants(
  catalog: Catalog,
  model: Model,
  isVisible: (model: Model) => boolean,
): readonly Grant[] {
  const field = model.fields.get('fullName')
  if (model !== META_MODEL || !field) return []
  const visible = catalog.storedModels.filter((each) => each === META_MODEL || isVisible(each))
  return [
    {
      actions: new Set(['read', 'export']),
      where: {
        kind: 'comparison',
        steps: [],
        field,
        operator: 'in',
        values: visible.map(({ name }) => name),
      },
      conditionFields: new Set([field.name]),
      readable: undefined,
      writable: new Set(),
    },
  ]
}
