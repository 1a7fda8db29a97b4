// One-time links that set a password. Each account has at most one, which is stored with the hash of its token.
import { toUser, USER_COLUMNS, USERS_TABLE, type UserRow } from './accounts.js'
import type { Queryable, Transaction } from '../engine/database.js'

export const RESET_LINK_TABLE = 'verso_reset_link'

export interface ResetLink {
  readonly hash: string
  readonly expiresMs: number
}

/** Saves the link of a user and replaces the previous one. */
export async function saveResetLink(
  tx: Transaction,
  userId: number,
  { hash, expiresMs }: ResetLink,
): Promise<void> {
  await tx.run(
    `insert into ${RESET_LINK_TABLE} (user_id, hash, expires_ms) values (?, ?, ?) ` +
      'on conflict (user_id) do update set hash = excluded.hash, expires_ms = excluded.expires_ms',
    [userId, hash, expiresMs],
  )
}

/** Finds the user whose password the link sets. */
export async function findResetLink(
  db: Queryable,
  hash: string,
): Promise<{ readonly user: UserRow; readonly expiresMs: number } | undefined> {
  const [row] = await db.all(
    `select l.expires_ms, ${USER_COLUMNS} from ${RESET_LINK_TABLE} as l join ${USERS_TABLE} as u on u."id" = l.user_id where l.hash = ?`,
    [hash],
  )
  return row && { user: toUser(row), expiresMs: Number(row['expires_ms']) }
}

/** Deletes the link, because it is valid for one use. Returns false if another request has used it first. */
export async function consumeResetLink(tx: Transaction, hash: string): Promise<boolean> {
  return (await tx.run(`delete from ${RESET_LINK_TABLE} where hash = ?`, [hash])) === 1
}

export async function deleteResetLink(tx: Transaction, userId: number): Promise<void> {
  await tx.run(`delete from ${RESET_LINK_TABLE} where user_id = ?`, [userId])
}

export async function deleteExpiredResetLinks(tx: Transaction, expiresMs: number): Promise<number> {
  return tx.run(`delete from ${RESET_LINK_TABLE} where expires_ms < ?`, [expiresMs])
}
