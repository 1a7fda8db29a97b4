import type { Queryable, Transaction } from '../engine/database.js'

export interface IdempotencyClaim {
  readonly userId: number
  readonly key: string
  /** Digest of the whole request. A key that is reused with a different request is rejected. */
  readonly digest: string
  readonly nowMs: number
}

export interface StoredResponse {
  readonly digest: string
  readonly response: string
  /** The permissions version that the response was made with; null if there was none, or if an older node stored the response. */
  readonly permissionsVersion: number | null
}

/**
 * Claims the key for this transaction, or returns the response that is stored under it. While another transaction holds the key, this
 * waits for its end. If that transaction is rolled back, the key is free.
 */
export async function claimIdempotencyKey(
  tx: Transaction,
  { userId, key, digest, nowMs }: IdempotencyClaim,
  retentionMs: number,
) {
  // In a group commit, a second request with the same key would see the uncommitted claim of the first instead of waiting for its response.
  tx.requireExclusive()
  const claimedRows = await tx.run(
    'insert into verso_idempotency (user_id, key, digest, created_ms) values (?, ?, ?, ?) on conflict (user_id, key) ' +
      'do update set digest = excluded.digest, answer = null, epoch = null, created_ms = excluded.created_ms ' +
      'where verso_idempotency.created_ms < ?',
    [userId, key, digest, nowMs, nowMs - retentionMs],
  )
  return claimedRows === 1 ? undefined : findResponse(tx, userId, key)
}

async function findResponse(db: Queryable, userId: number, key: string): Promise<StoredResponse> {
  const [row] = await db.all(
    'select digest, answer, epoch from verso_idempotency where user_id = ? and key = ?',
    [userId, key],
  )
  if (!row) throw new Error('a claimed idempotency key has no row')
  return {
    digest: String(row['digest']),
    response: String(row['answer']),
    permissionsVersion: row['epoch'] === null ? null : Number(row['epoch']),
  }
}

export async function saveResponse(
  tx: Transaction,
  { userId, key }: IdempotencyClaim,
  response: string,
  permissionsVersion: number | null,
): Promise<void> {
  await tx.run('update verso_idempotency set answer = ?, epoch = ? where user_id = ? and key = ?', [
    response,
    permissionsVersion,
    userId,
    key,
  ])
}

export async function deleteResponsesBefore(tx: Transaction, beforeMs: number): Promise<number> {
  return tx.run('delete from verso_idempotency where created_ms < ?', [beforeMs])
}
