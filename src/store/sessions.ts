import { toUser, USER_COLUMNS, USERS, type UserRow } from './accounts.js'
import type { Queryable, Transaction } from './database.js'
import { RIGHTS_EPOCH } from './epoch.js'

/** A session as it is kept: by the hash of its id, so that a copy of the database opens no door. */
export interface SessionRow {
  readonly hash: string
  readonly userId: number
  readonly createdMs: number
  readonly seenMs: number
}

export async function openSession(tx: Transaction, session: SessionRow): Promise<void> {
  const { hash, userId, createdMs, seenMs } = session
  await tx.run('insert into verso_session (hash, user_id, created_ms, seen_ms) values (?, ?, ?, ?)', [
    hash,
    userId,
    createdMs,
    seenMs,
  ])
}

/** The session and its user, and whether rights have changed, in one statement: this runs on every request. */
export async function findSession(
  db: Queryable,
  hash: string,
): Promise<{ session: SessionRow; user: UserRow; epoch: number } | undefined> {
  const [row] = await db.all(
    `select s.user_id, s.created_ms, s.seen_ms, ${RIGHTS_EPOCH} as "epoch", ${USER_COLUMNS} from verso_session as s ` +
      `join ${USERS} as u on u."id" = s.user_id where s.hash = ?`,
    [hash],
  )
  if (!row) return undefined
  const session = {
    hash,
    userId: Number(row['user_id']),
    createdMs: Number(row['created_ms']),
    seenMs: Number(row['seen_ms']),
  }
  return { session, user: toUser(row), epoch: Number(row['epoch'] ?? 0) }
}

export async function touchSession(tx: Transaction, hash: string, seenMs: number): Promise<void> {
  await tx.run('update verso_session set seen_ms = ? where hash = ? and seen_ms < ?', [seenMs, hash, seenMs])
}

export async function closeSession(tx: Transaction, hash: string): Promise<void> {
  await tx.run('delete from verso_session where hash = ?', [hash])
}

export async function closeSessionsOf(tx: Transaction, userId: number): Promise<void> {
  await tx.run('delete from verso_session where user_id = ?', [userId])
}

export async function closeSessionsBefore(
  tx: Transaction,
  seenMs: number,
  createdMs: number,
): Promise<number> {
  return tx.run('delete from verso_session where seen_ms < ? or created_ms < ?', [seenMs, createdMs])
}
