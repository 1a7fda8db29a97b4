// What somebody is told of themselves: who they are, and what they may do.
import { API_KEY_MODEL } from '../../model/catalog/auth-models.js'
import type { Model } from '../../model/definition/model.js'
import { ID_FIELD, VERSION_FIELD } from '../../model/query/path.js'
import type { Grant, PermissionAction, Permissions } from '../../model/access/permissions.js'
import { isReadOnly } from '../../model/catalog/system-models.js'
import * as store from '../../store/records/records.js'
import type { Actor } from '../context/identity.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { actionsOf, modelsKnownTo } from '../access/permission-checks.js'

type Actions = Readonly<Record<PermissionAction, boolean>>

export interface ModelPermission extends Actions {
  readonly model: string
  /** The fields that may be read in some record; all of them if null. */
  readonly readable: readonly string[] | null
  readonly writable: readonly string[] | null
  /** Whether some of it is for some records only. */
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

export async function ownAccount(
  app: App,
  by: Caller,
  { id, version, username, name }: Actor,
  via: OwnAccount['via'],
): Promise<OwnAccount> {
  const user = await store.read(app.db.reader, app.tables.of(app.catalog.user), id)
  const lastLoginOn = (user?.['lastLoginOn'] ?? null) as string | null
  const { rights, roles } = by
  const permissions = modelsKnownTo(app, by).map((model) => ({
    model: model.name,
    ...actionsIn(by, model),
    ...(rights
      ? granted(model, rights)
      : { readable: null, writable: isReadOnly(model) ? [] : null, conditional: false }),
  }))
  return {
    ...{ id, version, username, name, roles, admin: rights === undefined, lastLoginOn, via },
    permissions: permissions.sort((a, b) => (a.model < b.model ? -1 : 1)),
  }
}

function actionsIn(by: Caller, model: Model): Actions {
  const may = new Set(actionsOf(by, model))
  return {
    ...{
      read: may.has('read'),
      update: may.has('update'),
      remove: may.has('remove'),
      export: may.has('export'),
    },
    // Keys are made elsewhere, by their users.
    create: may.has('create') && model.name !== API_KEY_MODEL,
  }
}

function granted(model: Model, all: Permissions): Omit<ModelPermission, 'model' | PermissionAction> {
  const rights = all.of(model)
  const writing = isReadOnly(model) ? [] : [...rights.grantsFor('create'), ...rights.grantsFor('update')]
  return {
    readable: named(
      rights.grantsFor('read').map(({ readable }) => readable),
      (name) => ALWAYS_READABLE.includes(name) || all.findReadable(model, name) !== undefined,
    ),
    writable: named(
      writing.map(({ writable }) => writable),
      (name) => isWritable(model, all, name),
    ),
    conditional: rights.grants.some(({ where }) => where !== undefined),
  }
}

const ALWAYS_READABLE = [ID_FIELD.name, VERSION_FIELD.name]

/** A relation to records that they may not read is no field for them, whatever is granted. */
function isWritable(model: Model, rights: Permissions, name: string): boolean {
  const field = model.fields.get(name)
  return field !== undefined && rights.canWrite(model, field) && rights.isVisible(model, field)
}

/** Of the names in the lists those that mean something: a grant may name fields that other models of its package have. */
function named(
  lists: readonly Grant['readable'][],
  isMeant: (name: string) => boolean,
): readonly string[] | null {
  const names = new Set<string>()
  for (const list of lists) {
    if (!list) return null
    for (const name of list) if (isMeant(name)) names.add(name)
  }
  return [...names].sort()
}
