import type { Transaction } from './database.js'

export interface FailureCount {
  readonly failures: number
  /** When the window that they are counted in began. */
  readonly sinceMs: number
}

/** One more failure under this key; a window that has passed begins anew. In the store, so that all nodes agree. */
export async function countFailure(
  tx: Transaction,
  key: string,
  nowMs: number,
  windowMs: number,
): Promise<FailureCount> {
  await tx.run(
    'insert into verso_login_failure (key, since_ms, failures) values (?, ?, 1) on conflict (key) do update set ' +
      'failures = case when verso_login_failure.since_ms <= ? then 1 else verso_login_failure.failures + 1 end, ' +
      'since_ms = case when verso_login_failure.since_ms <= ? then excluded.since_ms else verso_login_failure.since_ms end',
    [key, nowMs, nowMs - windowMs, nowMs - windowMs],
  )
  const [row] = await tx.all('select failures, since_ms from verso_login_failure where key = ?', [key])
  return { failures: Number(row?.['failures'] ?? 1), sinceMs: Number(row?.['since_ms'] ?? nowMs) }
}

/** Takes one back: the login that was counted beforehand did not fail. */
export async function discountFailure(tx: Transaction, key: string): Promise<void> {
  await tx.run('update verso_login_failure set failures = failures - 1 where key = ? and failures > 0', [key])
}

export async function forgetFailures(tx: Transaction, beforeMs: number): Promise<number> {
  return tx.run('delete from verso_login_failure where since_ms < ?', [beforeMs])
}
