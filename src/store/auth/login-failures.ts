import type { Queryable, Transaction } from '../engine/database.js'

export interface LoginFailureCount {
  readonly failures: number
  /** The start of the time window in which the failures are counted. */
  readonly sinceMs: number
}

/** Counts one more failure of a key. Starts a new window if the last one has passed. The database keeps the count for all nodes. */
export async function saveLoginFailure(
  tx: Transaction,
  key: string,
  nowMs: number,
  windowMs: number,
): Promise<LoginFailureCount> {
  await tx.run(
    'insert into verso_login_failure (key, since_ms, failures) values (?, ?, 1) on conflict (key) do update set ' +
      'failures = case when verso_login_failure.since_ms <= ? then 1 else verso_login_failure.failures + 1 end, ' +
      'since_ms = case when verso_login_failure.since_ms <= ? then excluded.since_ms else verso_login_failure.since_ms end',
    [key, nowMs, nowMs - windowMs, nowMs - windowMs],
  )
  return (await findLoginFailures(tx, key, nowMs - windowMs)) ?? { failures: 1, sinceMs: nowMs }
}

/** Finds the failures of a key, if its window began after `afterMs`. */
export async function findLoginFailures(
  db: Queryable,
  key: string,
  afterMs: number,
): Promise<LoginFailureCount | undefined> {
  const [row] = await db.all(
    'select failures, since_ms from verso_login_failure where key = ? and since_ms > ?',
    [key, afterMs],
  )
  return row && { failures: Number(row['failures']), sinceMs: Number(row['since_ms']) }
}

export async function deleteLoginFailuresBefore(tx: Transaction, beforeMs: number): Promise<number> {
  return tx.run('delete from verso_login_failure where since_ms < ?', [beforeMs])
}
