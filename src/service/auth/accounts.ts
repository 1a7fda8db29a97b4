import { VersoError } from '../../errors.js'
import { normalizeUsername } from '../../model/catalog/auth-models.js'
import {
  findCredentialsByTypedName,
  findCredentials,
  findUser,
  hasAdministrator,
  listUsers,
  findNewestUserId,
  type UserRow,
} from '../../store/auth/accounts.js'
import type { WriteOptions } from '../../wire.js'
import { DEMO_PASSWORD, DEMO_USERNAME } from './user-hooks.js'
import type { App } from '../context/app.js'
import { SERVICE_PRINCIPAL } from '../context/principal.js'
import { throwNotFound } from '../context/ids.js'
import { verifyPassword } from '../write/password-hash.js'
import { ensureAdministratorRole, changeRoles, resolveRoles } from './roles.js'
import { requireUserByName } from './user-records.js'
import { createRecord, updateRecord } from '../records/save.js'
import { createContext } from '../context/context.js'

const FIRST_ADMIN_KEY_PREFIX = 'the first administrator after account'

export interface NewUser {
  readonly username: string
  readonly name?: string | undefined
  readonly password: string
  /** The names of their roles; without any they may do nothing. */
  readonly roles: readonly string[]
}

export async function addUser(
  app: App,
  { username, name, password, roles }: NewUser,
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
    throw new VersoError('not-unique', `There is a user "${normal}" already`, error.details)
  }
}

const FIELD_LABELS: Readonly<Record<string, string>> = { username: 'The user name', password: 'The password' }

/** Whoever makes an account was asked for a user name and a password, not for a record. */
function toReadableError(error: unknown): unknown {
  if (!(error instanceof VersoError) || error.kind !== 'invalid') return error
  const parts = Object.entries(error.details.errors ?? {}).map(
    ([name, message]) => `${FIELD_LABELS[name] ?? name} ${message}`,
  )
  return new VersoError('invalid', parts.join('; '), error.details)
}

/** Ends every session of the user, on every node. */
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

/** A disabled user cannot log in, and every session of theirs is over. */
export async function setUserDisabled(app: App, username: string, disabled: boolean): Promise<void> {
  const { id, version } = await requireUserByName(app, username)
  await updateRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.user, {
    id,
    data: { version, disabled },
  })
}

/** The id of an account, which must be there. */
export async function requireUser(app: App, id: number): Promise<number> {
  return (await findUser(app.db.reader, id))?.id ?? throwNotFound(app.catalog.user, id)
}

export async function listAllUsers(app: App): Promise<UserRow[]> {
  return listUsers(app.db.reader)
}

/** There may be users all the same: those of an import are disabled, and nobody knows their passwords. */
export async function lacksAdministrator(app: App): Promise<boolean> {
  return !(await hasAdministrator(app.db.reader))
}

/** The account of the demo, if there is no administrator yet. */
export async function ensureDemoAccount(app: App): Promise<void> {
  await ensureFirstAccount(app, {
    username: DEMO_USERNAME,
    name: 'Administrator',
    password: DEMO_PASSWORD,
  })
}

/** The first administrator, if there is none; answers whether it was made. An account of that name becomes it. */
export async function ensureFirstAdmin(app: App, username: string, password: string): Promise<boolean> {
  return ensureFirstAccount(app, { username, password })
}

async function ensureFirstAccount(app: App, first: Omit<NewUser, 'roles'>): Promise<boolean> {
  // Read first: an administrator that is made after this has a larger id, or the next statement sees it.
  const newest = await findNewestUserId(app.db.reader)
  if (!(await lacksAdministrator(app))) return false
  try {
    const role = await ensureAdministratorRole(app)
    const user = { ...first, roles: [role] }
    const existing = await findCredentialsByTypedName(app.db.reader, user.username)
    if (existing && existing.user.id > newest) return false
    if (existing) await promoteExistingUser(app, existing.user, user, role)
    // One key for all who try at once: there is one first administrator.
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

/** Whether anybody could log in with the password that is printed in the documentation. */
export async function hasDemoPassword(app: App): Promise<boolean> {
  const found = await findCredentials(app.db.reader, DEMO_USERNAME)
  return (
    found !== undefined && !found.user.disabled && (await verifyPassword(found.passwordHash, DEMO_PASSWORD))
  )
}
