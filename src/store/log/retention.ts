// What of the Log may go, and what of it goes for good.
import type { Change } from '../../wire.js'
import type { Dialect, Queryable, Transaction } from '../engine/database.js'
import { raiseRetentionFloor } from './feed.js'
import { LOG_TABLE } from './log.js'

/** Which Changes may go. */
export interface RetentionLimit {
  readonly beforeMs: number
  /** How many of the newest of each record stay. One at least: it tells that there was such a record, and its last version. */
  readonly keptPerRecord: number
}

/** The first numbers of Changes that may go, after this one. */
export async function findRemovableChanges(
  db: Queryable,
  { beforeMs, keptPerRecord }: RetentionLimit,
  seq: number,
  limit: number,
): Promise<number[]> {
  const newest = `select max(n.version) from ${LOG_TABLE} as n where n.model = l.model and n.record = l.record`
  const rows = await db.all(
    `select l.seq from ${LOG_TABLE} as l where l.seq > ? and l.at_ms < ? and l.version <= (${newest}) - ? order by l.seq limit ?`,
    [seq, beforeMs, keptPerRecord, limit],
  )
  return rows.map((row) => Number(row['seq']))
}

/** Takes them out of the Log; whoever has not seen them yet is told so from now on. */
export async function deleteChanges(
  tx: Transaction,
  { json }: Dialect,
  seqs: readonly number[],
): Promise<number> {
  if (seqs.length === 0) return 0
  await raiseRetentionFloor(tx, Math.max(...seqs))
  return tx.run(`delete from ${LOG_TABLE} where seq in (${json.unnest('integer')})`, [JSON.stringify(seqs)])
}

/** Takes the values out of all Changes of a record but the newest; answers how many lost something. */
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

/** What the newest says from now on: what the record holds, and nothing of what it held. */
export async function replaceChangeValues(
  tx: Transaction,
  model: string,
  id: number,
  version: number,
  changes: Change['changes'],
): Promise<void> {
  await tx.run(
    `update ${LOG_TABLE} set changes = ?, purged = 1 where model = ? and record = ? and version = ?`,
    [JSON.stringify(changes), model, id, version],
  )
}
