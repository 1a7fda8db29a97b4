// Users by name, with their roles: what the command line does with them.
import { Refusal } from '../../errors.js'
import { normalizeUsername } from '../../model/auth.js'
import { isObject } from '../../model/value.js'
import { findLogin } from '../../store/accounts.js'
import * as store from '../../store/records.js'
import { closeSessionsOf } from '../../store/sessions.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../app.js'
import { SERVICE } from '../rights/caller.js'
import { noteEvent } from './events.js'
import { rolesNamed } from './roles.js'
import { update } from '../saves.js'

const PAGE = 1_000

/** Everybody with an account, and the roles they have. */
export async function userRecords(app: App): Promise<readonly WireRecord[]> {
  const table = app.tables.of(app.catalog.user)
  const all: WireRecord[] = []
  for (;;) {
    const page = await store.walk(app.db.reader, table, { after: all.at(-1)?.id ?? 0, limit: PAGE })
    all.push(...page)
    if (page.length < PAGE) return all
  }
}

/** Before anybody is asked for a password: whether the name can be taken, and whether there are such roles. */
export async function requireFreeName(app: App, username: string, roles: readonly string[]): Promise<void> {
  const normal = normalizeUsername(username)
  if (normal === undefined) {
    const rule = 'must be 1 to 64 letters, digits or any of . _ @ + -'
    throw new Refusal('invalid', `The user name ${rule}`, { errors: { username: rule } })
  }
  if (await findLogin(app.db.reader, normal))
    throw new Refusal('not-unique', `There is a user "${normal}" already`)
  await rolesNamed(app, roles)
}

/** Ends all of them, on every node. */
export async function endSessionsOf(app: App, username: string): Promise<number> {
  const { id } = await userNamed(app, username)
  return app.db.transaction(async (tx) => {
    const ended = await closeSessionsOf(tx, id)
    if (ended > 0) await noteEvent(app, tx, { kind: 'sessions-ended', userId: id })
    return ended
  })
}

export interface RoleChanges {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

/** Answers the names of the roles that the user has now. */
export async function changeRolesOf(app: App, username: string, changes: RoleChanges): Promise<string[]> {
  const [added, removed] = [await rolesNamed(app, changes.add), await rolesNamed(app, changes.remove)]
  const { user } = app.catalog
  for (;;) {
    const record = await userNamed(app, username)
    const gone = new Set(removed.map(({ id }) => id))
    const ids = new Set(
      [...idsIn(record['roles']), ...added.map(({ id }) => id)].filter((id) => !gone.has(id)),
    )
    const roles = [...ids].map((id) => ({ id }))
    try {
      const { data } = await update(app, SERVICE, user, record.id, { version: record.version, roles })
      return namesIn(data['roles'])
    } catch (error) {
      // Somebody changed the account at the same time: with what they wrote in it, once more.
      if (!(error instanceof Refusal) || error.kind !== 'conflict') throw error
    }
  }
}

export async function userNamed(app: App, username: string): Promise<WireRecord> {
  const found = await findLogin(app.db.reader, normalizeUsername(username) ?? '')
  const record = found && (await store.read(app.db.reader, app.tables.of(app.catalog.user), found.user.id))
  if (!record) throw new Refusal('not-found', `There is no user "${username}"`)
  return record
}

/** The names in a list of neighbours. */
export function namesIn(list: unknown): string[] {
  return Array.isArray(list) ? list.filter(isObject).map(({ name }) => String(name)) : []
}

function idsIn(list: unknown): number[] {
  return Array.isArray(list) ? list.filter(isObject).map(({ id }) => Number(id)) : []
}
