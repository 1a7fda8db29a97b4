import { API_KEY_MODEL } from '../../model/catalog/auth-models.js'
import { toUserAccess, USER_ACCESS_COLUMNS, USERS_TABLE, type UserAccess } from './accounts.js'
import type { Dialect, Queryable, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'

/** An API key. The Authorizer decides what the key permits. */
export interface ApiKeyRow {
  readonly id: number
  readonly expiresMs: number
  readonly usedMs: number | undefined
}

const API_KEYS_TABLE = quoteIdentifier(toTableName(API_KEY_MODEL))

/** Finds a key, its user, the permissions version and the revocation count in one statement. Runs on every request with an API key. */
export async function findApiKey(
  db: Queryable,
  { columns }: Dialect,
  { prefix, hash }: { readonly prefix: string; readonly hash: string },
): Promise<(UserAccess & { readonly key: ApiKeyRow }) | undefined> {
  const [row] = await db.all(
    `select k."id" as "keyId", k."expiresOn", k."lastUsedOn", ${USER_ACCESS_COLUMNS} ` +
      `from ${API_KEYS_TABLE} as k join ${USERS_TABLE} as u on u."id" = k."user" where k."prefix" = ? and k."hash" = ?`,
    [prefix, hash],
  )
  if (!row) return undefined
  const readMs = (name: string) => {
    const time = columns.datetime.decode(row[name] ?? null)
    return typeof time === 'string' ? Date.parse(time) : undefined
  }
  const key = { id: Number(row['keyId']), expiresMs: readMs('expiresOn') ?? 0, usedMs: readMs('lastUsedOn') }
  const { user, permissionsVersion, revocations } = toUserAccess(row)
  return { key, user, permissionsVersion, revocations }
}

/** Saves the last use of a key, unless it was used since `beforeMs`. A use is not an edit: the version stays, and no Change is logged. */
export async function saveApiKeyUse(
  tx: Transaction,
  { columns: { datetime } }: Dialect,
  id: number,
  { nowMs, beforeMs }: { readonly nowMs: number; readonly beforeMs: number },
): Promise<void> {
  const [now, before] = [nowMs, beforeMs].map((ms) => datetime.encode(new Date(ms).toISOString()))
  await tx.run(
    `update ${API_KEYS_TABLE} set "lastUsedOn" = ? where "id" = ? and ("lastUsedOn" is null or "lastUsedOn" < ?)`,
    [now ?? null, id, before ?? null],
  )
}
