// Deletes old Changes (compaction) and purges values from the Log.
import type { Change } from '../../wire.js'
import type { Dialect, Queryable, Transaction } from '../engine/database.js'
import { raiseRetentionFloor } from './feed.js'
import { LOG_TABLE } from '../sql/log-insert.js'

/** The Changes that compaction may delete: those that exceed all limits. */
export interface RetentionLimit {
  readonly beforeMs: number
  /** The first Change that is too young. All Changes after it stay, too, because a node with a wrong clock may have written older times. */
  readonly beforeSeq: number
  /** How many of the newest Changes of each record stay. At least 1: the last Change proves that the record existed, and has its version. */
  readonly keptPerRecord: number
}

/** Finds the first Change in commit order that was made at this time or later; `undefined` if there is none. */
export async function findFirstSeqSince(db: Queryable, atMs: number): Promise<number | undefined> {
  const [row] = await db.all(`select seq from ${LOG_TABLE} where at_ms >= ? order by seq limit 1`, [atMs])
  return row && Number(row['seq'])
}

/** Finds the latest time of a Change up to this time; `undefined` if there is none. */
export async function findLatestTime(db: Queryable, atMs: number): Promise<number | undefined> {
  const [row] = await db.all(`select max(at_ms) as "at_ms" from ${LOG_TABLE} where at_ms <= ?`, [atMs])
  const latest = row?.['at_ms'] ?? null
  return latest === null ? undefined : Number(latest)
}

/** Finds the first sequence numbers after `seq` of Changes that may be deleted. */
export async function findRemovableChanges(
  db: Queryable,
  { beforeMs, beforeSeq, keptPerRecord }: RetentionLimit,
  seq: number,
  limit: number,
): Promise<number[]> {
  const newest = `select max(n.version) from ${LOG_TABLE} as n where n.model = l.model and n.record = l.record`
  const rows = await db.all(
    `select l.seq from ${LOG_TABLE} as l where l.seq > ? and l.seq < ? and l.at_ms < ? and l.version <= (${newest}) - ? order by l.seq limit ?`,
    [seq, beforeSeq, beforeMs, keptPerRecord, limit],
  )
  return rows.map((row) => Number(row['seq']))
}

/** Deletes Changes and raises the retention floor, so that feed readers with an older cursor get an error. */
export async function deleteChanges(
  tx: Transaction,
  { json }: Dialect,
  seqs: readonly number[],
): Promise<number> {
  if (seqs.length === 0) return 0
  await raiseRetentionFloor(tx, Math.max(...seqs))
  return tx.run(`delete from ${LOG_TABLE} where seq in (${json.unnest('integer')})`, [JSON.stringify(seqs)])
}

/** Purges the values of all Changes of a record except the newest. Returns the number of Changes that had values. */
export async function purgeChangeValues(
  tx: Transaction,
  model: string,
  id: number,
  newest: number,
): Promise<number> {
  return tx.run(
    `update ${LOG_TABLE} set changes = '{}', purged = 1 where model = ? and record = ? and version < ? and changes <> '{}'`,
    [model, id, newest],
  )
}

/** Replaces the values of the newest Change of a record with its current values, without the previous ones. */
export async function replaceChangeValues(
  tx: Transaction,
  { model, id, version, changes }: Pick<Change, 'model' | 'id' | 'version' | 'changes'>,
): Promise<void> {
  await tx.run(
    `update ${LOG_TABLE} set changes = ?, purged = 1 where model = ? and record = ? and version = ?`,
    [JSON.stringify(changes), model, id, version],
  )
}
