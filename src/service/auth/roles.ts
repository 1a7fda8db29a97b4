// The default roles, the roles of users, and the upgrade of users from releases without roles.
import { VersoError } from '../../errors.js'
import { ROLE_MODEL } from '../../model/catalog/auth-models.js'
import { deleteFormerAccount, listFormerAccounts } from '../../store/schema/former-admins.js'
import * as store from '../../store/records/records.js'
import { listIds } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import { SERVICE_PRINCIPAL } from '../context/principal.js'
import { createRecord, saveRecords, updateRecord } from '../records/save.js'
import { createContext } from '../context/context.js'

export const ADMINISTRATOR_ROLE = 'administrator'
/** Permits what every user could do in releases without permissions. */
const EDITOR_ROLE = 'editor'

const ALL_ACTIONS = { canRead: true, canCreate: true, canUpdate: true, canRemove: true, canExport: true }
const DEFAULT_ROLES = [
  { name: ADMINISTRATOR_ROLE, description: 'May do everything.', admin: true },
  {
    name: EDITOR_ROLE,
    description: 'Reads and writes all records.',
    permissions: [{ model: '*', ...ALL_ACTIONS }],
  },
  {
    name: 'reader',
    description: 'Reads and exports all records.',
    permissions: [{ model: '*', canRead: true, canExport: true }],
  },
]

const MAX_ROLES = 10_000

export async function listRoles(app: App): Promise<readonly WireRecord[]> {
  return store.scanById(app.db.reader, app.tables.of(app.catalog.get(ROLE_MODEL)), {
    after: 0,
    limit: MAX_ROLES,
  })
}

/** Returns references to the roles of these names. Throws if a role does not exist. */
export async function resolveRoles(app: App, names: readonly string[]): Promise<{ readonly id: number }[]> {
  if (names.length === 0) return []
  const all = new Map((await listRoles(app)).map((role) => [role['name'], role.id]))
  const unknown = names.filter((name) => !all.has(name))
  if (unknown.length > 0)
    throw new VersoError(
      'not-found',
      `Unknown role ${unknown.map((name) => `"${name}"`).join(', ')}; known roles are ${[...all.keys()].join(', ')}${buildRoleHint(unknown)}`,
    )
  return names.map((name) => ({ id: all.get(name) ?? 0 }))
}

/** Says how to create the administrator role if it is missing. */
function buildRoleHint(unknown: readonly string[]): string {
  return unknown.includes(ADMINISTRATOR_ROLE)
    ? `. To create it, run: verso role add ${ADMINISTRATOR_ROLE} --admin`
    : ''
}

/** Runs at start. Creates the default roles if there are none, and gives users of releases without roles the equivalent one. */
export async function ensureDefaultRoles(app: App): Promise<void> {
  if ((await listRoles(app)).length === 0) await createDefaultRoles(app)
  const former = await listFormerAccounts(app.db.reader)
  const there = new Set((await listRoles(app)).map((role) => role['name']))
  for (const { id, isAdmin } of former) {
    const name = isAdmin ? ADMINISTRATOR_ROLE : EDITOR_ROLE
    if (there.has(name)) await changeRoles(app, id, { add: [name], remove: [] })
    else
      app.log.warn(
        `user ${id} lost all former permissions because the role ${name} does not exist: give the user another role`,
      )
    await app.db.transaction((tx) => deleteFormerAccount(tx, id))
  }
}

/** Creates all roles in one transaction: several nodes may start at the same time, and one may be stopped in between. */
async function createDefaultRoles(app: App): Promise<void> {
  try {
    await saveRecords(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(ROLE_MODEL), DEFAULT_ROLES)
  } catch (error) {
    if (!(error instanceof VersoError) || error.kind !== 'not-unique') throw error
  }
}

/** Returns the name of a role that permits everything. Creates one if there is none. */
export async function ensureAdministratorRole(app: App): Promise<string> {
  const roles = await listRoles(app)
  const there = roles.find((role) => role['admin'] === true)
  if (there) return String(there['name'])
  const taken = new Set(roles.map((role) => role['name']))
  const names = [ADMINISTRATOR_ROLE, `${ADMINISTRATOR_ROLE} of everything`]
  const [first] = DEFAULT_ROLES
  const name = names.find((each) => !taken.has(each)) ?? ADMINISTRATOR_ROLE
  await createRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(ROLE_MODEL), { ...first, name })
  return name
}

export interface RoleChanges {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

/** Returns the user after the change; undefined if there is none. Writes nothing if the roles stay the same. */
export async function changeRoles(
  app: App,
  userId: number,
  changes: RoleChanges,
): Promise<WireRecord | undefined> {
  const { user } = app.catalog
  const added = listIds(await resolveRoles(app, changes.add))
  const removed = new Set(listIds(await resolveRoles(app, changes.remove)))
  const table = app.tables.of(user)
  for (;;) {
    const record = await store.readById(app.db.reader, table, userId, { select: table.full })
    if (!record) return undefined
    const before = listIds(record['roles'])
    const ids = [...new Set([...before, ...added])].filter((id) => !removed.has(id))
    if (ids.join() === before.join()) return record
    try {
      const roles = ids.map((id) => ({ id }))
      return (
        await updateRecord(createContext(app, SERVICE_PRINCIPAL), user, {
          id: userId,
          data: {
            version: record.version,
            roles,
          },
        })
      ).data
    } catch (error) {
      // Another write changed the user: try again with its new version.
      if (!(error instanceof VersoError) || error.kind !== 'conflict') throw error
    }
  }
}
