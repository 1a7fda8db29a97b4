import type { Queryable, Transaction } from '../engine/database.js'

export interface Claim {
  readonly userId: number
  readonly key: string
  /** Of the whole request: the same key must not come with another one. */
  readonly digest: string
  readonly nowMs: number
}

export interface StoredAnswer {
  readonly digest: string
  readonly answer: string
  /** Of the rights that it was made by; null if it was made without, or by an older node. */
  readonly epoch: number | null
}

/**
 * Takes the key for this transaction, or answers what was stored under it. While another transaction holds the key this waits for
 * its end; if that one is rolled back, the key is free.
 */
export async function claim(tx: Transaction, { userId, key, digest, nowMs }: Claim, keptMs: number) {
  // Those who share the transaction would be waited for by themselves.
  tx.shared?.leave()
  const taken = await tx.run(
    'insert into verso_idempotency (user_id, key, digest, created_ms) values (?, ?, ?, ?) on conflict (user_id, key) ' +
      'do update set digest = excluded.digest, answer = null, epoch = null, created_ms = excluded.created_ms ' +
      'where verso_idempotency.created_ms < ?',
    [userId, key, digest, nowMs, nowMs - keptMs],
  )
  return taken === 1 ? undefined : findAnswer(tx, userId, key)
}

async function findAnswer(db: Queryable, userId: number, key: string): Promise<StoredAnswer> {
  const [row] = await db.all(
    'select digest, answer, epoch from verso_idempotency where user_id = ? and key = ?',
    [userId, key],
  )
  if (!row) throw new Error('an idempotency key was there and is gone')
  return {
    digest: String(row['digest']),
    answer: String(row['answer']),
    epoch: row['epoch'] === null ? null : Number(row['epoch']),
  }
}

export async function keepAnswer(
  tx: Transaction,
  { userId, key }: Claim,
  answer: string,
  epoch: number | null,
): Promise<void> {
  await tx.run('update verso_idempotency set answer = ?, epoch = ? where user_id = ? and key = ?', [
    ...[answer, epoch, userId, key],
  ])
}

export async function forgetAnswers(tx: Transaction, beforeMs: number): Promise<number> {
  return tx.run('delete from verso_idempotency where created_ms < ?', [beforeMs])
}
