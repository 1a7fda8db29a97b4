import { toUserAccess, USER_ACCESS_COLUMNS, USERS_TABLE, type UserAccess } from './accounts.js'
import type { Queryable, Row, Transaction } from '../engine/database.js'

/** A stored session. It has the hash of the session id, so that a copy of the database does not permit a login. */
export interface SessionRow {
  readonly hash: string
  readonly userId: number
  readonly createdMs: number
  readonly seenMs: number
  /** The address and user agent of the login; null if an older node created the session. */
  readonly address: string | null
  readonly agent: string | null
}

export async function insertSession(tx: Transaction, session: SessionRow): Promise<void> {
  const { hash, userId, createdMs, seenMs, address, agent } = session
  await tx.run(
    'insert into verso_session (hash, user_id, created_ms, seen_ms, address, agent) values (?, ?, ?, ?, ?, ?)',
    [hash, userId, createdMs, seenMs, address, agent],
  )
}

const SESSION_COLUMNS = 's.hash, s.user_id, s.created_ms, s.seen_ms, s.address, s.agent'

/** Finds a session, its user, the permissions version and the revocation count in one statement. Runs on every request with a session. */
export async function findSession(
  db: Queryable,
  hash: string,
): Promise<(UserAccess & { readonly session: SessionRow }) | undefined> {
  const [row] = await db.all(
    `select ${SESSION_COLUMNS}, ${USER_ACCESS_COLUMNS} from verso_session as s ` +
      `join ${USERS_TABLE} as u on u."id" = s.user_id where s.hash = ?`,
    [hash],
  )
  if (!row) return undefined
  const { user, permissionsVersion, revocations } = toUserAccess(row)
  return { session: toSession(row), user, permissionsVersion, revocations }
}

export async function updateSessionSeen(tx: Transaction, hash: string, seenMs: number): Promise<void> {
  await tx.run('update verso_session set seen_ms = ? where hash = ? and seen_ms < ?', [seenMs, hash, seenMs])
}

/** Lists the sessions of a user, the newest first. */
export async function listSessionRows(db: Queryable, userId: number): Promise<SessionRow[]> {
  const rows = await db.all(
    `select ${SESSION_COLUMNS} from verso_session as s where s.user_id = ? order by s.created_ms desc, s.hash`,
    [userId],
  )
  return rows.map(toSession)
}

/** Deletes a session and returns the id of its user; undefined if the session does not exist. */
export async function deleteSession(tx: Transaction, hash: string): Promise<number | undefined> {
  const [row] = await tx.all('select user_id from verso_session where hash = ?', [hash])
  const isClosed = (await tx.run('delete from verso_session where hash = ?', [hash])) === 1
  return row && isClosed ? Number(row['user_id']) : undefined
}

/** Deletes all sessions of a user, or all but one, and returns their number. */
export async function deleteUserSessions(tx: Transaction, userId: number, except = ''): Promise<number> {
  return tx.run('delete from verso_session where user_id = ? and hash <> ?', [userId, except])
}

export async function deleteExpiredSessions(
  tx: Transaction,
  seenMs: number,
  createdMs: number,
): Promise<number> {
  return tx.run('delete from verso_session where seen_ms < ? or created_ms < ?', [seenMs, createdMs])
}

function toSession(row: Row): SessionRow {
  return {
    hash: String(row['hash']),
    userId: Number(row['user_id']),
    createdMs: Number(row['created_ms']),
    seenMs: Number(row['seen_ms']),
    address: row['address'] as string | null,
    agent: row['agent'] as string | null,
  }
}
