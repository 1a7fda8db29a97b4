import { VersoError } from '../../errors.js'
import { normalizeUsername, validateNewUsername } from '../../model/catalog/auth-models.js'
import {
  findCredentialsByTypedName,
  findCredentials,
  findUser,
  hasAdministrator,
  listUsers,
  findNewestUserId,
  type UserRow,
  findUserWithOlderSpelling,
} from '../../store/auth/accounts.js'
import type { WriteOptions, WireRecord } from '../../wire.js'
import { DEMO_PASSWORD, DEMO_USERNAME } from './user-hooks.js'
import type { App } from '../context/app.js'
import { toUserIdentity, type UserIdentity } from '../context/identity.js'
import { SERVICE_PRINCIPAL } from '../context/principal.js'
import { throwNotFound } from '../access/request-checks.js'
import { verifyPassword } from '../input/password-hash.js'
import { ensureAdministratorRole, changeRoles, resolveRoles, type RoleChanges } from './roles.js'
import { createRecord, updateRecord } from '../records/save.js'
import { createContext } from '../context/context.js'
import { isObject } from '../../model/values/value.js'
import * as store from '../../store/records/records.js'
import { endSessions } from './sessions.js'

const FIRST_ADMIN_KEY_PREFIX = 'the first administrator after account'
const USER_PAGE_ROWS = 1_000

export interface NewUser {
  readonly username: string
  readonly name?: string | undefined
  readonly password: string
  /** The names of the roles. A user without roles may do nothing. */
  readonly roles?: readonly string[] | undefined
}

export async function addUser(
  app: App,
  { username, name, password, roles = [] }: NewUser,
  options: WriteOptions = {},
): Promise<number> {
  const normal = normalizeUsername(username) ?? username
  try {
    const user = { username: normal, name: name ?? normal, password, roles: await resolveRoles(app, roles) }
    const { data } = await createRecord(
      createContext(app, SERVICE_PRINCIPAL),
      app.catalog.user,
      user,
      options,
    )
    return data.id
  } catch (error) {
    if (!(error instanceof VersoError) || error.kind !== 'not-unique') throw toReadableError(error)
    throw new VersoError('not-unique', `User "${normal}" already exists; nothing was changed`, error.details)
  }
}

const FIELD_LABELS: Readonly<Record<string, string>> = { username: 'The user name', password: 'The password' }

/** Rewrites field errors for the command line, where the user entered a username and a password instead of a record. */
function toReadableError(error: unknown): unknown {
  if (!(error instanceof VersoError) || error.kind !== 'invalid') return error
  const parts = Object.entries(error.details.errors ?? {}).map(
    ([name, message]) => `${FIELD_LABELS[name] ?? name} ${message}`,
  )
  return new VersoError('invalid', parts.join('; '), error.details)
}

/** Also ends every session of the user, on every node. */
export async function changePassword(app: App, username: string, password: string): Promise<void> {
  const { id, version } = await requireUserByName(app, username)
  await updateRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.user, {
    id,
    data: {
      version,
      password,
    },
  }).catch((error: unknown) => {
    throw toReadableError(error)
  })
}

/** A disabled user cannot log in. Disabling ends every session of the user. */
export async function setUserDisabled(app: App, username: string, disabled: boolean): Promise<void> {
  const { id, version } = await requireUserByName(app, username)
  await updateRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.user, {
    id,
    data: { version, disabled },
  })
}

/** Finds an enabled user by a typed name. */
export async function findUserIdentity(app: App, username: string): Promise<UserIdentity | undefined> {
  const found = await findCredentialsByTypedName(app.db.reader, username)
  return found && !found.user.disabled ? toUserIdentity(found.user) : undefined
}

/** Returns the id. Throws if there is no such user. */
export async function requireUser(app: App, id: number): Promise<number> {
  return (await findUser(app.db.reader, id))?.id ?? throwNotFound(app.catalog.user, id)
}

export async function listAllUsers(app: App): Promise<UserRow[]> {
  return listUsers(app.db.reader)
}

/** True if no enabled user is an administrator. There may be other users: an import creates disabled ones without a known password. */
export async function lacksAdministrator(app: App): Promise<boolean> {
  return !(await hasAdministrator(app.db.reader))
}

/** Creates the account of the demo if there is no administrator. */
export async function ensureDemoAccount(app: App): Promise<void> {
  await ensureFirstAccount(app, {
    username: DEMO_USERNAME,
    name: 'Administrator',
    password: DEMO_PASSWORD,
  })
}

/** Creates the first administrator, or makes the user of that name one. Returns false if there is an administrator already. */
export async function ensureFirstAdmin(app: App, username: string, password: string): Promise<boolean> {
  return ensureFirstAccount(app, { username, password })
}

async function ensureFirstAccount(app: App, first: Omit<NewUser, 'roles'>): Promise<boolean> {
  // Read first: an administrator that is created after this has a larger id, or the next statement sees it.
  const newest = await findNewestUserId(app.db.reader)
  if (!(await lacksAdministrator(app))) return false
  try {
    const role = await ensureAdministratorRole(app)
    const user = { ...first, roles: [role] }
    const existing = await findCredentialsByTypedName(app.db.reader, user.username)
    if (existing && existing.user.id > newest) return false
    if (existing) await promoteExistingUser(app, existing.user, user, role)
    // All nodes that start at the same time use the same idempotency key, so only one of them creates the user.
    else await addUser(app, user, { idempotencyKey: `${FIRST_ADMIN_KEY_PREFIX} ${newest}` })
    return true
  } catch (error) {
    const isOvertaken =
      error instanceof VersoError && ['not-unique', 'key-reused', 'conflict'].includes(error.kind)
    if (isOvertaken) return false
    throw error
  }
}

async function promoteExistingUser(
  app: App,
  { id, version }: UserRow,
  { password }: NewUser,
  role: string,
): Promise<void> {
  const again = { version, password, disabled: false }
  await updateRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.user, { id, data: again }).catch(
    (error: unknown) => {
      throw toReadableError(error)
    },
  )
  await changeRoles(app, id, { add: [role], remove: [] })
}

/** True if the demo account is enabled and has its public password. */
export async function hasDemoPassword(app: App): Promise<boolean> {
  return createDemoPasswordCheck(app)()
}

/** Returns a function like hasDemoPassword. It verifies a password only when the stored hash has changed since its last call. */
export function createDemoPasswordCheck(app: App): () => Promise<boolean> {
  let verified: { readonly hash: string; readonly isRight: Promise<boolean> } | undefined
  return async () => {
    const found = await findCredentials(app.db.reader, DEMO_USERNAME)
    if (!found || found.user.disabled) return false
    const { passwordHash: hash } = found
    if (verified?.hash !== hash) verified = { hash, isRight: verifyPassword(hash, DEMO_PASSWORD) }
    try {
      return await verified.isRight
    } catch (error) {
      verified = undefined
      throw error
    }
  }
}

/** Lists all users with their roles. */
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

/** Checks the username and the roles, before the command line asks for a password. */
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
  if (taken)
    throw new VersoError('not-unique', `User "${taken.username}" already exists; nothing was changed`)
  await resolveRoles(app, roles)
}

/** Ends all sessions of the user, on every node. Returns their number. */
export async function endUserSessions(app: App, username: string): Promise<number> {
  return endSessions(createContext(app, SERVICE_PRINCIPAL), (await requireUserByName(app, username)).id)
}

/** Returns the names of the roles after the change. */
export async function changeUserRoles(app: App, username: string, changes: RoleChanges): Promise<string[]> {
  const record = await changeRoles(app, (await requireUserByName(app, username)).id, changes)
  return readNames(record?.['roles'])
}

export async function requireUserByName(app: App, username: string): Promise<WireRecord> {
  const found = await findCredentialsByTypedName(app.db.reader, username)
  const table = app.tables.of(app.catalog.user)
  const record = found && (await store.readById(app.db.reader, table, found.user.id, { select: table.full }))
  if (!record) throw new VersoError('not-found', `User "${username}" does not exist`)
  return record
}

/** Reads the names of related records. */
export function readNames(list: unknown): string[] {
  return Array.isArray(list) ? list.filter(isObject).map(({ name }) => String(name)) : []
}
