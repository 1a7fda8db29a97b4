// Roles and their permissions by name, for the command line.
import { VersoError } from '../../errors.js'
import { PERMISSION_MODEL, ROLE_MODEL } from '../../model/catalog/auth-models.js'
import type { Criteria } from '../../model/query/criteria.js'
import { ID_FIELD, buildStep } from '../../model/query/path.js'
import * as store from '../../store/records/records.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import { SERVICE_PRINCIPAL } from '../context/principal.js'
import { throwNotFound } from '../access/request-checks.js'
import { removeRecord } from '../records/remove.js'
import { listRoles, resolveRoles } from './roles.js'
import { createRecord } from '../records/save.js'
import { readNames, listUserRecords } from './accounts.js'
import { createContext } from '../context/context.js'

/** Exceeds the number of permissions of any role. */
const MAX_ROLE_PERMISSIONS = 10_000

export interface NewRole {
  readonly name: string
  readonly description?: string | undefined
  readonly admin?: boolean | undefined
}

export async function addRole(app: App, { name, description = '', admin = false }: NewRole): Promise<number> {
  const data = { name, description: description === '' ? null : description, admin }
  try {
    return (await createRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(ROLE_MODEL), data)).data
      .id
  } catch (error) {
    if (!(error instanceof VersoError) || error.kind !== 'not-unique') throw error
    throw new VersoError('not-unique', `Role "${name}" already exists; nothing was changed`, error.details)
  }
}

export async function requireRole(app: App, name: string): Promise<WireRecord> {
  const [reference] = await resolveRoles(app, [name])
  const role = (await listRoles(app)).find(({ id }) => id === reference?.id)
  return role ?? throwNotFound(app.catalog.get(ROLE_MODEL), reference?.id ?? 0)
}

export async function listPermissions(app: App, role: WireRecord): Promise<readonly WireRecord[]> {
  const model = app.catalog.get(PERMISSION_MODEL)
  const field = model.fields.get('role')
  if (!field) return []
  const steps = [buildStep(app.catalog, model, field)]
  const where: Criteria = { kind: 'comparison', steps, field: ID_FIELD, operator: 'in', values: [role.id] }
  return store.scanById(app.db.reader, app.tables.of(model), { after: 0, limit: MAX_ROLE_PERMISSIONS, where })
}

/** Adds a permission to a role. */
export async function addPermission(app: App, name: string, permission: object): Promise<WireRecord> {
  const [role] = await resolveRoles(app, [name])
  return (
    await createRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(PERMISSION_MODEL), {
      ...permission,
      role,
    })
  ).data
}

export async function removePermission(app: App, name: string, id: number): Promise<void> {
  const role = await requireRole(app, name)
  const permissions = await listPermissions(app, role)
  if (!permissions.some((each) => each.id === id)) {
    const ids = permissions.map((each) => each.id)
    const there = ids.length === 0 ? 'it has none' : `its permissions are ${ids.join(', ')}`
    throw new VersoError('not-found', `Role "${name}" has no permission ${id}; ${there}`)
  }
  await removeRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(PERMISSION_MODEL), id)
}

/** Removes the role with its permissions, also from the users that have it. */
export async function removeRole(app: App, name: string): Promise<void> {
  const role = await requireRole(app, name)
  if (role['admin'] === true && !(await hasAdministratorWithout(app, name)))
    throw new VersoError(
      'forbidden',
      `Removing the role "${name}" would remove the last administrator. Give a user another administrator role first: verso role add <role> --admin, then verso user roles <name> --add <role>; nothing was changed`,
    )
  await removeRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(ROLE_MODEL), role.id)
}

/** True if an enabled user has another role that permits everything. */
async function hasAdministratorWithout(app: App, name: string): Promise<boolean> {
  const others = (await listRoles(app)).filter((role) => role['admin'] === true && role['name'] !== name)
  const names = new Set(others.map((role) => String(role['name'])))
  const users = (await listUserRecords(app)).filter((user) => user['disabled'] !== true)
  return users.some((user) => readNames(user['roles']).some((each) => names.has(each)))
}
