// Who may do what: the roles of a user and their permissions, worked out once and kept until something of it changes.
import { VersoError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
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
import type { Actor } from './identity.js'
import { builtInGrants } from './built-in-grants.js'
import type { Caller } from './principal.js'

interface Composed {
  readonly catalog: Catalog
  readonly db: Database
  readonly tables: Tables
}

const MAX_KEPT = 10_000
/** More than anybody has. */
const MAX_READ = 10_000
const MAX_ATTEMPTS = 10

interface Kept {
  readonly epoch: number
  readonly caller: Promise<Omit<Caller, 'actor' | 'epoch'>>
}

export class Gate {
  readonly #kept = new Map<string, Kept>()

  constructor(private readonly app: Composed) {}

  /** `epoch` as a request has just read it; it is read here otherwise. */
  async callerOf(actor: Actor, epoch?: number): Promise<Caller> {
    const now = epoch ?? (await readPermissionsVersion(this.app.db.reader))
    const key = `${actor.id} ${actor.keyId ?? ''}`
    const known = this.#kept.get(key)
    if (known?.epoch === now) return { actor, epoch: now, ...(await known.caller) }
    const kept = { epoch: now, caller: this.#settled(actor, now) }
    this.#keep(key, kept)
    try {
      return { actor, epoch: now, ...(await kept.caller) }
    } catch (error) {
      if (this.#kept.get(key) === kept) this.#kept.delete(key)
      throw error
    }
  }

  #keep(key: string, kept: Kept): void {
    this.#kept.delete(key)
    const [oldest] = this.#kept.keys()
    if (oldest !== undefined && this.#kept.size >= MAX_KEPT) this.#kept.delete(oldest)
    this.#kept.set(key, kept)
  }

  /** Read in several statements: what was changed between them is not to be mixed, so they are read again. */
  async #settled(actor: Actor, epoch: number): Promise<Omit<Caller, 'actor' | 'epoch'>> {
    let before = epoch
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const caller = await this.#work(actor)
      const after = await readPermissionsVersion(this.app.db.reader)
      if (after === before) return caller
      before = after
    }
    throw new VersoError('busy', 'Who may do what is being changed: try again', { retryAfterS: 1 })
  }

  async #work(actor: Actor): Promise<Omit<Caller, 'actor' | 'epoch'>> {
    const { catalog, db, tables } = this.app
    const user = await store.read(db.reader, tables.of(catalog.user), actor.id)
    const roles = await this.#rolesOf(user, actor.keyId)
    const names = roles.map((role) => String(role['name']))
    if (roles.some((role) => role['admin'] === true)) return { rights: undefined, roles: names }
    // Of the neighbours of a user who they are: what they hold may change without anybody noticing here.
    const asParameter = user ? { id: user.id, ...toValues(catalog.user, user) } : {}
    const permissions = await this.#permissionsOf(roles.map(({ id }) => id))
    const rights: Permissions = new Permissions(catalog, (model): readonly Grant[] => [
      ...permissions.flatMap((each) => buildGrant(catalog, model, each, asParameter) ?? []),
      ...builtInGrants(catalog, model, (other) => rights.of(other).isVisible),
    ])
    return { rights, roles: names }
  }

  /** Of a key those that its user has, too: who loses a role loses it in all their keys. */
  async #rolesOf(user: WireRecord | undefined, keyId: number | undefined): Promise<WireRecord[]> {
    const own = listIds(user?.['roles'])
    if (keyId === undefined) return this.#recordsOf(ROLE_MODEL, own)
    const { catalog, db, tables } = this.app
    const key = await store.read(db.reader, tables.of(catalog.get(API_KEY_MODEL)), keyId)
    const scope = new Set(listIds(key?.['roles']))
    return this.#recordsOf(
      ROLE_MODEL,
      own.filter((id) => scope.has(id)),
    )
  }

  async #permissionsOf(roles: readonly number[]): Promise<Permission[]> {
    const model = this.app.catalog.get(PERMISSION_MODEL)
    const role = model.fields.get('role')
    if (!role) return []
    const steps = [buildStep(this.app.catalog, model, role)]
    const where: Criteria = { kind: 'comparison', steps, field: ID_FIELD, operator: 'in', values: roles }
    return (await this.#walk(model, where)).map(parsePermission)
  }

  async #recordsOf(name: string, ids: readonly number[]): Promise<WireRecord[]> {
    const where: Criteria = { kind: 'comparison', steps: [], field: ID_FIELD, operator: 'in', values: ids }
    return this.#walk(this.app.catalog.get(name), where)
  }

  async #walk(model: Model, where: Criteria): Promise<WireRecord[]> {
    const { db, tables } = this.app
    return store.scanById(db.reader, tables.of(model), { after: 0, limit: MAX_READ, where })
  }
}
