// The consumers of the Log: each `afterCommit` function has a name, and a position up to which it has run or left jobs.
import type { Dialect, Queryable, Row, Transaction } from '../engine/database.js'
import type { Change } from '../../wire.js'
import { LAST_SEQ_SQL } from '../log/feed.js'
import { CHANGE_COLUMNS, FROM_LOG, toChange } from '../log/log.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { HOOK_JOB_TABLE } from './jobs.js'
import { HOOK_TABLE, takeNamedLease, type NamedLease } from './leases.js'

export interface ConsumerState {
  readonly name: string
  /** The sequence number of the last Change that has run, or has a job. */
  readonly position: number
  /** The token of the node that works; null if there is none. */
  readonly lease: string | null
  readonly leasedUntilMs: number
  /** When the next job is due; null without jobs that wait. */
  readonly nextJobMs: number | null
}

/** Registers consumers at the end of the Log. One that exists keeps its position. */
export async function registerConsumers(tx: Transaction, names: readonly string[]): Promise<void> {
  for (const name of names)
    await tx.run(
      `insert into ${HOOK_TABLE} (name, position) values (?, ${LAST_SEQ_SQL}) on conflict (name) do nothing`,
      [name],
    )
}

/** Reads the state of all consumers in one statement, which every node repeats. */
export async function listConsumers(db: Queryable): Promise<ConsumerState[]> {
  const nextJob = `select min(j.next_ms) from ${HOOK_JOB_TABLE} as j where j.hook = h.name and j.dead = 0`
  const rows = await db.all(
    `select h.name, h.position, h.lease, h.leased_until_ms, (${nextJob}) as "due" from ${HOOK_TABLE} as h order by h.name`,
  )
  return rows.map((row) => ({
    name: String(row['name']),
    position: Number(row['position']),
    lease: row['lease'] as string | null,
    leasedUntilMs: Number(row['leased_until_ms'] ?? 0),
    nextJobMs: row['due'] === null ? null : Number(row['due']),
  }))
}

/** Takes the lease of a consumer. Returns its position, or undefined if another node has the lease. */
export async function takeConsumer(
  tx: Transaction,
  lease: NamedLease,
  times: { readonly nowMs: number; readonly untilMs: number },
): Promise<number | undefined> {
  if (!(await takeNamedLease(tx, lease, times))) return undefined
  const [row] = await tx.all(`select position from ${HOOK_TABLE} where name = ?`, [lease.name])
  return Number(row?.['position'])
}

/** Moves the position of a consumer. The caller has locked its lease. */
export async function moveConsumer(tx: Transaction, name: string, position: number): Promise<void> {
  await tx.run(`update ${HOOK_TABLE} set position = ? where name = ?`, [position, name])
}

/** The models with Changes after a sequence number. */
export interface ChangedModels {
  readonly models: ReadonlySet<string>
  readonly lastSeq: number
}

/** Finds which of the models have Changes after `since`, in one statement for all consumers of a node. */
export async function findChangedModels(
  db: Queryable,
  { json }: Dialect,
  models: readonly string[],
  since: number,
): Promise<ChangedModels> {
  const rows = await db.all(
    `select "at"."last", "some".model from (select ${LAST_SEQ_SQL} as "last") as "at" left join ` +
      `(select distinct model from ${LOG_TABLE} where seq > ? and model in (${json.unnest('text')})) as "some" on 1 = 1`,
    [since, JSON.stringify(models)],
  )
  const names = rows.flatMap(({ model = null }) => (model === null ? [] : [String(model)]))
  return { models: new Set(names), lastSeq: Number(rows[0]?.['last'] ?? since) }
}

/** Counts the Changes of a model that a consumer has not reached. */
export async function countChangesAfter(
  db: Queryable,
  model: string,
  position: number,
  upTo = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  const [row] = await db.all(
    `select count(*) as "n" from ${LOG_TABLE} where model = ? and seq > ? and seq <= ?`,
    [model, position, upTo],
  )
  return Number(row?.['n'])
}

/** Reads Changes by their sequence numbers. Compaction may have deleted some. */
export async function findLoggedChanges(
  db: Queryable,
  { json }: Dialect,
  seqs: readonly number[],
): Promise<Map<number, Change>> {
  const rows = await db.all(
    `select ${CHANGE_COLUMNS} ${FROM_LOG} where l.seq in (${json.unnest('integer')})`,
    [JSON.stringify(seqs)],
  )
  return new Map(rows.map((row: Row) => [Number(row['seq']), toChange(row)]))
}

/** Finds the id of the user who made a Change, also if the account was deleted since. */
export async function findAuthorId(db: Queryable, seq: number): Promise<number | null> {
  const [row] = await db.all(`select by_user from ${LOG_TABLE} where seq = ?`, [seq])
  const id = row?.['by_user'] ?? null
  return id === null ? null : Number(id)
}
