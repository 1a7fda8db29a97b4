// Lists the roles, and shows one with its permissions and users.
import { ACTION_FIELDS } from '../../model/access/permission-record.js'
import { PERMISSION_ACTIONS, type PermissionAction } from '../../model/access/permissions.js'
import { pluralize } from '../../model/values/plural.js'
import { readNames, listUserRecords } from '../../service/auth/accounts.js'
import { listPermissions, requireRole } from '../../service/auth/role-records.js'
import { listRoles } from '../../service/auth/roles.js'
import type { App } from '../../service/context/app.js'
import type { WireRecord } from '../../wire.js'
import {
  formatNames,
  formatTable,
  printJson,
  printLine,
  printListing,
  type ListingColumn,
} from '../terminal/listing.js'
import { escapeControls } from '../terminal/escape-controls.js'
import { spellCommands } from '../terminal/invocation.js'

interface ListedRole {
  readonly id: number
  readonly name: string
  readonly description: string | null
  /** The role permits everything. */
  readonly admin: boolean
  readonly permissionCount: number
}

const ROLE_COLUMNS: readonly ListingColumn<ListedRole>[] = [
  { heading: 'id', format: ({ id }) => String(id) },
  { heading: 'role', format: ({ name }) => name },
  {
    heading: 'permits',
    format: ({ admin, permissionCount: count }) =>
      admin ? 'everything' : count === 0 ? 'nothing' : pluralize(count, 'permission'),
  },
  { heading: 'description', format: ({ description }) => description ?? '' },
]

interface ListedPermission {
  readonly id: number
  readonly model: string
  readonly actions: readonly PermissionAction[]
  /** Null: all records. */
  readonly condition: string | null
  /** Null: all fields. */
  readonly readable: readonly string[] | null
  readonly writable: readonly string[] | null
}

const PERMISSION_COLUMNS: readonly ListingColumn<ListedPermission>[] = [
  { heading: 'id', format: ({ id }) => String(id) },
  { heading: 'model', format: ({ model }) => model },
  { heading: 'actions', format: ({ actions }) => actions.join(',') },
  { heading: 'condition', format: ({ condition }) => condition ?? 'all' },
  { heading: 'readable', format: ({ readable }) => formatFieldNames(readable) },
  { heading: 'writable', format: ({ writable }) => formatFieldNames(writable) },
]

export async function printRoles(app: App, json: boolean): Promise<void> {
  printListing((await listRoles(app)).map(toListedRole), ROLE_COLUMNS, { json })
}

export async function printRole(app: App, name: string, json: boolean): Promise<void> {
  const record = await requireRole(app, name)
  const { permissionCount, ...role } = toListedRole(record)
  const permissions = (await listPermissions(app, record)).map(toListedPermission)
  const users = (await listUserRecords(app))
    .filter((user) => readNames(user['roles']).includes(name))
    .map(({ username }) => String(username))
  if (json) {
    printJson({ ...role, permissions, users })
    return
  }
  const permitted = role.admin
    ? 'permits everything'
    : permissionCount === 0
      ? spellCommands('permits nothing; to add a permission, run: verso role permit')
      : formatTable(permissions, PERMISSION_COLUMNS)
  printLine(
    `${name}: ${escapeControls(role.description ?? 'no description')}\n\n${permitted}\n\nusers: ${formatNames(users)}`,
  )
}

function toListedRole(role: WireRecord): ListedRole {
  const { id, name, description, admin, permissions } = role
  return {
    id,
    name: String(name),
    description: toTextOrNull(description),
    admin: admin === true,
    permissionCount: Array.isArray(permissions) ? permissions.length : 0,
  }
}

function toListedPermission(permission: WireRecord): ListedPermission {
  const { id, model, condition, readable, writable } = permission
  return {
    id,
    model: String(model),
    actions: PERMISSION_ACTIONS.filter((action) => permission[ACTION_FIELDS[action]] === true),
    condition: toTextOrNull(condition),
    readable: toNamesOrNull(readable),
    writable: toNamesOrNull(writable),
  }
}

function formatFieldNames(names: readonly string[] | null): string {
  return names === null ? 'all' : names.join(',') || 'none'
}

function toTextOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function toNamesOrNull(value: unknown): readonly string[] | null {
  return Array.isArray(value) ? value.map(String) : null
}
