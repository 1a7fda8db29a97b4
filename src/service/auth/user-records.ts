// Users by name, with their roles: what the command line does with them.
import { VersoError } from '../../errors.js'
import { normalizeUsername, validateNewUsername } from '../../model/catalog/auth-models.js'
import { isObject } from '../../model/values/value.js'
import { findCredentialsByTypedName, findUserWithOlderSpelling } from '../../store/auth/accounts.js'
import * as store from '../../store/records/records.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import { SERVICE_PRINCIPAL } from '../context/principal.js'
import { endSessions } from './open-sessions.js'
import { changeRoles, resolveRoles, type RoleChanges } from './roles.js'
import { createContext } from '../context/context.js'

const USER_PAGE_ROWS = 1_000

/** Everybody with an account, and the roles they have. */
export async function listUserRecords(app: App): Promise<readonly WireRecord[]> {
  const table = app.tables.of(app.catalog.user)
  const all: WireRecord[] = []
  for (;;) {
    const page = await store.scanById(app.db.reader, table, {
      after: all.at(-1)?.id ?? 0,
      limit: USER_PAGE_ROWS,
    })
    all.push(...page)
    if (page.length < USER_PAGE_ROWS) return all
  }
}

/** Before anybody is asked for a password: whether the name can be taken, and whether there are such roles. */
export async function requireFreeUsername(
  app: App,
  username: string,
  roles: readonly string[],
): Promise<void> {
  const error = validateNewUsername(username)
  if (error !== undefined)
    throw new VersoError('invalid', `The user name ${error}`, { errors: { username: error } })
  const normal = normalizeUsername(username) ?? username
  const taken =
    (await findCredentialsByTypedName(app.db.reader, username))?.user ??
    (await findUserWithOlderSpelling(app.db.reader, normal, undefined))
  if (taken) throw new VersoError('not-unique', `There is a user "${taken.username}" already`)
  await resolveRoles(app, roles)
}

/** Ends all of them, on every node; answers how many. */
export async function endUserSessions(app: App, username: string): Promise<number> {
  return endSessions(createContext(app, SERVICE_PRINCIPAL), (await requireUserByName(app, username)).id)
}

/** Answers the names of the roles that the user has now. */
export async function changeUserRoles(app: App, username: string, changes: RoleChanges): Promise<string[]> {
  const record = await changeRoles(app, (await requireUserByName(app, username)).id, changes)
  return readNames(record?.['roles'])
}

export async function requireUserByName(app: App, username: string): Promise<WireRecord> {
  const found = await findCredentialsByTypedName(app.db.reader, username)
  const table = app.tables.of(app.catalog.user)
  const record = found && (await store.read(app.db.reader, table, found.user.id, table.full))
  if (!record) throw new VersoError('not-found', `There is no user "${username}"`)
  return record
}

/** The names in a list of neighbours. */
export function readNames(list: unknown): string[] {
  return Array.isArray(list) ? list.filter(isObject).map(({ name }) => String(name)) : []
}
