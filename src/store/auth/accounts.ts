import { normalizeUsername, ROLE_MODEL, listUsernameSpellings } from '../../model/catalog/auth-models.js'
import { USER_SYSTEM_MODEL } from '../../model/catalog/system-models.js'
import type { Dialect, Queryable, Row, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { toLinkTableName } from '../sql/relation.js'
import { PERMISSIONS_VERSION_SQL, REVOCATION_COUNT_SQL } from './permissions-version.js'

export interface UserRow {
  readonly id: number
  readonly version: number
  readonly username: string
  readonly name: string | null
  readonly disabled: boolean
}

/** A user, with the versions that decide whether cached permissions and sessions are still valid. */
export interface UserAccess {
  readonly user: UserRow
  readonly permissionsVersion: number
  readonly revocations: number
}

export interface AccountCredentials {
  readonly user: UserRow
  readonly passwordHash: string
}

export const USERS_TABLE = quoteIdentifier(toTableName(USER_SYSTEM_MODEL.name))
const ROLES_TABLE = quoteIdentifier(toTableName(ROLE_MODEL))
const USER_ROLES_TABLE = quoteIdentifier(toLinkTableName(USER_SYSTEM_MODEL.name, 'roles'))
export const USER_COLUMNS = `u."id", u."version", u."username", u."name", case when u."disabled" then 1 else 0 end as "disabled"`
export const USER_ACCESS_COLUMNS = `${PERMISSIONS_VERSION_SQL} as "epoch", ${REVOCATION_COUNT_SQL} as "ends", ${USER_COLUMNS}`

export async function findCredentials(
  db: Queryable,
  username: string,
): Promise<AccountCredentials | undefined> {
  return selectCredentials(db, username, '')
}

/** Finds an account by a typed name. Two accounts of an earlier release can differ only in the width or font of letters; an exact match wins. */
export async function findCredentialsByTypedName(
  db: Queryable,
  typedName: string,
): Promise<AccountCredentials | undefined> {
  for (const name of listUsernameSpellings(typedName)) {
    const found = await findCredentials(db, name)
    if (found) return found
  }
  return undefined
}

/** Finds another account, of an earlier release, whose name is stored without today's normalization and is otherwise the same. */
export async function findUserWithOlderSpelling(
  db: Queryable,
  username: string,
  exceptId: number | undefined,
): Promise<UserRow | undefined> {
  const isNotAscii = 'length(u."username") <> octet_length(u."username")'
  const rows = await db.all(`select ${USER_COLUMNS} from ${USERS_TABLE} as u where ${isNotAscii}`)
  return rows
    .map(toUser)
    .find(
      (user) =>
        user.id !== exceptId && user.username !== username && normalizeUsername(user.username) === username,
    )
}

/** Finds an account and locks it until the transaction ends. */
export async function lockCredentials(
  tx: Transaction,
  dialect: Dialect,
  username: string,
): Promise<AccountCredentials | undefined> {
  return selectCredentials(tx, username, dialect.lockForUpdate)
}

/** The only function that reads password hashes. */
async function selectCredentials(
  db: Queryable,
  username: string,
  lock: string,
): Promise<AccountCredentials | undefined> {
  const [row] = await db.all(
    `select ${USER_COLUMNS}, u."password" from ${USERS_TABLE} as u where u."username" = ?${lock}`,
    [username],
  )
  return row && { user: toUser(row), passwordHash: String(row['password']) }
}

/** Finds a user by id and locks the account until the transaction ends. */
export async function lockUser(tx: Transaction, dialect: Dialect, id: number): Promise<UserRow | undefined> {
  const [row] = await tx.all(
    `select ${USER_COLUMNS} from ${USERS_TABLE} as u where u."id" = ?${dialect.lockForUpdate}`,
    [id],
  )
  return row && toUser(row)
}

export async function findUser(db: Queryable, id: number): Promise<UserRow | undefined> {
  const [row] = await db.all(`select ${USER_COLUMNS} from ${USERS_TABLE} as u where u."id" = ?`, [id])
  return row && toUser(row)
}

/** Finds the id of the newest account; 0 if there is none. */
export async function findNewestUserId(db: Queryable): Promise<number> {
  const [row] = await db.all(`select max("id") as "id" from ${USERS_TABLE}`)
  return Number(row?.['id'] ?? 0)
}

/** Returns true if at least one enabled account has a role with all permissions. */
export async function hasAdministrator(db: Queryable): Promise<boolean> {
  const from = `${USER_ROLES_TABLE} as l join ${ROLES_TABLE} as r on r."id" = l."member" join ${USERS_TABLE} as u on u."id" = l."owner"`
  const where = 'r."admin" is true and u."disabled" is not true'
  return (await db.all(`select 1 as "one" from ${from} where ${where} limit 1`)).length > 0
}

/** Saves the time of a login. A login is not an edit: the version stays, and no Change is logged. */
export async function saveLastLogin(
  tx: Transaction,
  dialect: Dialect,
  id: number,
  nowMs: number,
): Promise<void> {
  const { encode } = dialect.columns.datetime
  await tx.run(`update ${USERS_TABLE} set "lastLoginOn" = ? where "id" = ?`, [
    encode(new Date(nowMs).toISOString()),
    id,
  ])
}

export async function listUsers(db: Queryable): Promise<UserRow[]> {
  const rows = await db.all(`select ${USER_COLUMNS} from ${USERS_TABLE} as u order by u."username"`)
  return rows.map(toUser)
}

export function toUserAccess(row: Row): UserAccess {
  return {
    user: toUser(row),
    permissionsVersion: Number(row['epoch'] ?? 0),
    revocations: Number(row['ends'] ?? 0),
  }
}

export function toUser(row: Row): UserRow {
  return {
    id: Number(row['id']),
    version: Number(row['version']),
    username: String(row['username']),
    name: row['name'] as string | null,
    disabled: row['disabled'] === 1,
  }
}
