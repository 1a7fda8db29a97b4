// The purges of a database: which histories lost their values, and when. A restore of an older backup repeats them. They have no values.
import { parseStoredJson } from '../engine/write-health.js'
import type { Queryable, Transaction } from '../engine/database.js'

export const PURGE_TABLE = 'verso_purge'

export interface Purge {
  /** The id of the database. Undefined in a list that is part of a database. */
  readonly database?: number | undefined
  readonly model: string
  readonly id: number
  /** The last sequence number of the Log at the purge. */
  readonly seq: number
  readonly atMs: number
  /** True if the record was deleted before. */
  readonly isDeleted: boolean
  /** The sequence number of the last Change of each field. A backup from before that Change has a value that was purged. */
  readonly fields: Readonly<Record<string, number>>
}

export async function insertPurge(
  tx: Transaction,
  { model, id, seq, atMs, isDeleted, fields }: Purge,
): Promise<void> {
  await tx.run(
    `insert into ${PURGE_TABLE} (model, record, seq, at_ms, deleted, fields) values (?, ?, ?, ?, ?, ?)`,
    [model, id, seq, atMs, isDeleted ? 1 : 0, JSON.stringify(fields)],
  )
}

/** Lists all purges, the oldest first. */
export async function listPurges(db: Queryable): Promise<Purge[]> {
  const rows = await db.all(
    `select model, record, seq, at_ms, deleted, fields from ${PURGE_TABLE} order by at_ms, id`,
  )
  return rows.map((row) => ({
    model: String(row['model']),
    id: Number(row['record']),
    seq: Number(row['seq']),
    atMs: Number(row['at_ms']),
    isDeleted: row['deleted'] === 1,
    fields: parseStoredJson(row['fields']) as Purge['fields'],
  }))
}

/** Two lists may have the same purge: one from the database, one from a journal. */
export function toPurgeKey({ model, id, seq, atMs }: Purge): string {
  return `${model} ${id} ${seq} ${atMs}`
}
