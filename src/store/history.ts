// The Changes of one record, page by page.
import type { Change } from '../wire.js'
import type { Queryable } from './database.js'
import { LAST_SEQ } from './feed.js'
import { CHANGE_COLUMNS, LOG_TABLE, toChange, WITH_USER } from './log.js'

export interface HistoryRows {
  readonly total: number
  /** The number of the last Change of all. */
  readonly seq: number
  readonly changes: readonly Change[]
}

/** Newest first, with the count of all of them: of one moment. */
export async function historyRows(
  db: Queryable,
  model: string,
  id: number,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<HistoryRows> {
  const own = `from ${LOG_TABLE} where model = ? and record = ?`
  const rows = await db.all(
    `select "at"."total", "at"."last", ${CHANGE_COLUMNS} ` +
      `from (select (select count(*) ${own}) as "total", ${LAST_SEQ} as "last") as "at" ` +
      `left join (select * ${own} order by version desc limit ? offset ?) as l on 1 = 1 ${WITH_USER} order by l.version desc`,
    [model, id, model, id, limit, offset],
  )
  return {
    total: Number(rows[0]?.['total']),
    seq: Number(rows[0]?.['last']),
    changes: rows.filter((row) => row['seq'] !== null).map(toChange),
  }
}

/** The last version of a record that the Log knows. */
export async function lastVersion(db: Queryable, model: string, id: number): Promise<number | undefined> {
  const [row] = await db.all(
    `select max(version) as "last" from ${LOG_TABLE} where model = ? and record = ?`,
    [model, id],
  )
  return row?.['last'] === null || row === undefined ? undefined : Number(row['last'])
}
