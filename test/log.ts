// The Log as tests look at it, whoever may see it.
import type { Queryable } from '../src/store/engine/database.js'
import { CHANGE_COLUMNS, FROM_LOG, toChange } from '../src/store/log/log.js'
import type { Change } from '../src/wire.js'

/** The changes of one record that made the versions after `from`, up to `to`, newest first. */
export async function changesBetween(
  db: Queryable,
  model: string,
  id: number,
  from: number,
  to: number,
): Promise<Change[]> {
  const rows = await db.all(
    `select ${CHANGE_COLUMNS} ${FROM_LOG} where l.model = ? and l.record = ? and l.version > ? and l.version <= ? ` +
      `order by l.version desc`,
    [model, id, from, to],
  )
  return rows.map(toChange)
}

/** Changes of all records in commit order. */
export async function changesSince(db: Queryable, seq: number, limit: number): Promise<Change[]> {
  const rows = await db.all(`select ${CHANGE_COLUMNS} ${FROM_LOG} where l.seq > ? order by l.seq limit ?`, [
    seq,
    limit,
  ])
  return rows.map(toChange)
}
