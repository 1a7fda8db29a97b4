// The jobs of `afterCommit` hooks: Changes that failed and will be retried, Changes behind them, and dead letters.
import type { Dialect, Queryable, Row, Transaction } from '../engine/database.js'

export const HOOK_JOB_TABLE = 'verso_hook_job'

export interface HookJob {
  readonly id: number
  /** The name of the consumer. */
  readonly hook: string
  /** The sequence number of the Change. */
  readonly seq: number
  /** The id of the record. */
  readonly record: number
  /** The runs so far. 0 for a Change that waits behind another one of its record. */
  readonly attempts: number
  readonly nextMs: number
  /** The error of the last run. */
  readonly error: string | null
  /** True after the last attempt. A dead job runs only after `retryJobs`. */
  readonly isDead: boolean
  readonly createdMs: number
}

export type NewHookJob = Omit<HookJob, 'id' | 'isDead'>

const JOB_COLUMNS = 'j.id, j.hook, j.seq, j.record, j.attempts, j.next_ms, j.error, j.dead, j.created_ms'

export async function insertJobs(tx: Transaction, jobs: readonly NewHookJob[]): Promise<void> {
  for (const { hook, seq, record, attempts, nextMs, error, createdMs } of jobs)
    await tx.run(
      `insert into ${HOOK_JOB_TABLE} (hook, seq, record, attempts, next_ms, error, dead, created_ms) ` +
        `values (?, ?, ?, ?, ?, ?, 0, ?) on conflict (hook, seq) do nothing`,
      [hook, seq, record, attempts, nextMs, error, createdMs],
    )
}

/** Finds which of these records have a job that is not dead. Their next Changes must wait behind it. */
export async function findWaitingRecords(
  db: Queryable,
  { json }: Dialect,
  hook: string,
  records: readonly number[],
): Promise<Set<number>> {
  const rows = await db.all(
    `select distinct record from ${HOOK_JOB_TABLE} where hook = ? and dead = 0 and record in (${json.unnest('integer')})`,
    [hook, JSON.stringify(records)],
  )
  return new Set(rows.map((row) => Number(row['record'])))
}

/** Lists jobs that are due: of each record only the first that is not dead. */
export async function listDueJobs(
  db: Queryable,
  hook: string,
  nowMs: number,
  limit: number,
): Promise<HookJob[]> {
  const earlier =
    `select 1 from ${HOOK_JOB_TABLE} as e where e.hook = j.hook and e.record = j.record ` +
    `and e.dead = 0 and e.seq < j.seq`
  const rows = await db.all(
    `select ${JOB_COLUMNS} from ${HOOK_JOB_TABLE} as j where j.hook = ? and j.dead = 0 and j.next_ms <= ? ` +
      `and not exists (${earlier}) order by j.seq limit ?`,
    [hook, nowMs, limit],
  )
  return rows.map(toHookJob)
}

export async function deleteJob(tx: Transaction, id: number): Promise<void> {
  await tx.run(`delete from ${HOOK_JOB_TABLE} where id = ?`, [id])
}

/** Stores the result of a failed attempt. */
export async function postponeJob(
  tx: Transaction,
  { id, attempts, nextMs, error, isDead }: Pick<HookJob, 'id' | 'attempts' | 'nextMs' | 'error' | 'isDead'>,
): Promise<void> {
  await tx.run(`update ${HOOK_JOB_TABLE} set attempts = ?, next_ms = ?, error = ?, dead = ? where id = ?`, [
    attempts,
    nextMs,
    error,
    isDead ? 1 : 0,
    id,
  ])
}

/** Lists the jobs of all hooks in commit order. */
export async function listJobs(db: Queryable, limit: number): Promise<HookJob[]> {
  const rows = await db.all(
    `select ${JOB_COLUMNS} from ${HOOK_JOB_TABLE} as j order by j.seq, j.hook limit ?`,
    [limit],
  )
  return rows.map(toHookJob)
}

export interface JobCounts {
  readonly waiting: number
  readonly dead: number
}

/** Counts the jobs of each hook that has any. */
export async function countJobs(db: Queryable): Promise<Map<string, JobCounts>> {
  const rows = await db.all(
    `select hook, count(*) as "n", sum(dead) as "dead" from ${HOOK_JOB_TABLE} group by hook`,
  )
  return new Map(
    rows.map((row) => {
      const dead = Number(row['dead'])
      return [String(row['hook']), { waiting: Number(row['n']) - dead, dead }]
    }),
  )
}

/** Makes jobs due at once, as if they had never run. Returns the number of jobs. */
export async function retryJobs(
  tx: Transaction,
  { json }: Dialect,
  ids: readonly number[] | 'all',
): Promise<number> {
  const some = ids === 'all' ? '' : ` where id in (${json.unnest('integer')})`
  return tx.run(
    `update ${HOOK_JOB_TABLE} set attempts = 0, dead = 0, next_ms = 0${some}`,
    ids === 'all' ? [] : [JSON.stringify(ids)],
  )
}

/** Deletes jobs, so that their Changes never run again. Returns the number of jobs. */
export async function deleteJobs(
  tx: Transaction,
  { json }: Dialect,
  ids: readonly number[] | 'all',
): Promise<number> {
  if (ids === 'all') return tx.run(`delete from ${HOOK_JOB_TABLE}`)
  return tx.run(`delete from ${HOOK_JOB_TABLE} where id in (${json.unnest('integer')})`, [
    JSON.stringify(ids),
  ])
}

function toHookJob(row: Row): HookJob {
  return {
    id: Number(row['id']),
    hook: String(row['hook']),
    seq: Number(row['seq']),
    record: Number(row['record']),
    attempts: Number(row['attempts']),
    nextMs: Number(row['next_ms']),
    error: row['error'] as string | null,
    isDead: Number(row['dead']) === 1,
    createdMs: Number(row['created_ms']),
  }
}
