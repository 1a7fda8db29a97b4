// The account of the acting user, with its permissions.
import type { Model } from '../../model/definition/model.js'
import { KEY_FIELD_NAMES } from '../../model/query/path.js'
import type { Grant, PermissionAction, Permissions } from '../../model/access/permissions.js'
import * as store from '../../store/records/records.js'
import type { UserIdentity } from '../context/identity.js'
import type { Principal } from '../context/principal.js'
import { listActions, listPermittedModels } from '../access/request-checks.js'
import type { Context } from '../context/context.js'

type ActionFlags = Readonly<Record<PermissionAction, boolean>>

export interface ModelPermission extends ActionFlags {
  readonly model: string
  /** The fields that the user may read in at least one record; null for all fields. */
  readonly readable: readonly string[] | null
  readonly writable: readonly string[] | null
  /** True if a permission has a condition. */
  readonly conditional: boolean
}

export interface OwnAccount {
  readonly id: number
  readonly version: number
  readonly username: string
  readonly name: string | null
  readonly roles: readonly string[]
  readonly admin: boolean
  readonly lastLoginOn: string | null
  readonly via: 'session' | 'key' | 'basic'
  readonly permissions: readonly ModelPermission[]
}

export async function readOwnAccount(
  context: Context,
  { id, version, username, name }: UserIdentity,
  via: OwnAccount['via'],
): Promise<OwnAccount> {
  const { app, principal } = context
  const user = await store.readById(app.db.reader, app.tables.of(app.catalog.user), id)
  const lastLoginOn = (user?.['lastLoginOn'] ?? null) as string | null
  const { permissions: modelPermissions, roles } = principal
  const permissions = listPermittedModels(app, principal).map((model) => ({
    model: model.name,
    ...buildActionFlags(principal, model),
    ...(modelPermissions
      ? summarizeGrants(model, modelPermissions)
      : { readable: null, writable: model.isReadOnly ? [] : null, conditional: false }),
  }))
  return {
    id,
    version,
    username,
    name,
    roles,
    admin: modelPermissions === undefined,
    lastLoginOn,
    via,
    permissions: permissions.sort((a, b) => (a.model < b.model ? -1 : 1)),
  }
}

function buildActionFlags(principal: Principal, model: Model): ActionFlags {
  const may = new Set(listActions(principal, model))
  return {
    read: may.has('read'),
    update: may.has('update'),
    remove: may.has('remove'),
    export: may.has('export'),
    create: may.has('create') && model.createInstruction === undefined,
  }
}

function summarizeGrants(model: Model, all: Permissions): Omit<ModelPermission, 'model' | PermissionAction> {
  const permissions = all.of(model)
  const writing = model.isReadOnly
    ? []
    : [...permissions.grantsFor('create'), ...permissions.grantsFor('update')]
  return {
    readable: collectFieldNames(
      permissions.grantsFor('read').map(({ readable }) => readable),
      (name) => KEY_FIELD_NAMES.includes(name) || all.findReadable(model, name) !== undefined,
    ),
    writable: collectFieldNames(
      writing.map(({ writable }) => writable),
      (name) => isFieldWritable(model, all, name),
    ),
    conditional: permissions.grants.some(({ where }) => where !== undefined),
  }
}

/** A relation to a model that the user may not read is not writable, whatever its permissions name. */
function isFieldWritable(model: Model, permissions: Permissions, name: string): boolean {
  const field = model.fields.get(name)
  return field !== undefined && permissions.canWrite(model, field) && permissions.isVisible(model, field)
}

/** Collects the names that are fields of the model: a permission for a package may name fields of other models. */
function collectFieldNames(
  lists: readonly Grant['readable'][],
  isIncluded: (name: string) => boolean,
): readonly string[] | null {
  const names = new Set<string>()
  for (const list of lists) {
    if (!list) return null
    for (const name of list) if (isIncluded(name)) names.add(name)
  }
  return [...names].sort()
}
