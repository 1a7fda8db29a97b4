// What somebody is told of themselves: who they are, and what they may do.
import type { Model } from '../model/model.js'
import type { Grant, ModelRights, PermittedAction } from '../model/rights.js'
import { isReadOnly } from '../model/system.js'
import * as store from '../store/records.js'
import type { Actor } from './actor.js'
import type { App } from './app.js'
import type { Caller } from './caller.js'

type Actions = Readonly<Record<PermittedAction, boolean>>

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
  { rights, roles }: Caller,
  { id, version, username, name }: Actor,
  via: OwnAccount['via'],
): Promise<OwnAccount> {
  const user = await store.read(app.db.reader, app.tables.of(app.catalog.user), id)
  const lastLoginOn = (user?.['lastLoginOn'] ?? null) as string | null
  const known = app.catalog.stored.filter((model) => !rights || rights.of(model).isKnown)
  const permissions = known.map((model) => (rights ? granted(model, rights.of(model)) : everything(model)))
  return {
    ...{ id, version, username, name, roles, admin: rights === undefined, lastLoginOn, via },
    permissions: permissions.sort((a, b) => (a.model < b.model ? -1 : 1)),
  }
}

function everything(model: Model): ModelPermission {
  const isWritten = !isReadOnly(model)
  return {
    ...{
      model: model.name,
      read: true,
      create: isWritten,
      update: isWritten,
      remove: isWritten,
      export: true,
    },
    ...{ readable: null, writable: isWritten ? null : [], conditional: false },
  }
}

function granted(model: Model, rights: ModelRights): ModelPermission {
  const may = (action: PermittedAction) =>
    rights.may(action) && (action === 'read' || action === 'export' || !isReadOnly(model))
  const writing = isReadOnly(model) ? [] : [...rights.for('create'), ...rights.for('update')]
  return {
    ...{ model: model.name, read: may('read'), create: may('create'), update: may('update') },
    ...{ remove: may('remove'), export: may('export') },
    readable: namesIn(rights.for('read').map(({ readable }) => readable)),
    writable: namesIn(writing.map(({ writable }) => writable)),
    conditional: rights.grants.some(({ where }) => where !== undefined),
  }
}

function namesIn(lists: readonly Grant['readable'][]): readonly string[] | null {
  const names = new Set<string>()
  for (const list of lists) {
    if (!list) return null
    for (const name of list) names.add(name)
  }
  return [...names].sort()
}
