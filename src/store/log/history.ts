// The Changes of one record, in pages.
import type { Change } from '../../wire.js'
import type { Queryable } from '../engine/database.js'
import { LAST_SEQ_SQL } from './feed.js'
import { CHANGE_COLUMNS, JOIN_USER, sumPrecedingSizes, toChange } from './log.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { compileLimit } from '../sql/parameters.js'

export interface RecordHistoryPage {
  readonly total: number
  /** The sequence number of the last Change in the Log, of any record. */
  readonly lastSeq: number
  readonly changes: readonly Change[]
  /** Undefined on the last page. */
  readonly nextOffset: number | undefined
}

/** Limits the size of a page. The first Change is always included, whatever its size. */
export const MAX_HISTORY_PAGE_BYTES = 4_000_000

/** Reads Changes, the newest first, and their total, in one statement and so from one snapshot. */
export async function readHistoryPage(
  db: Queryable,
  model: string,
  id: number,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<RecordHistoryPage> {
  const fromRecord = `from ${LOG_TABLE} where model = ? and record = ?`
  const page = `select seq, version, octet_length(changes) as "size" ${fromRecord} order by version desc ${compileLimit()} offset ?`
  const rows = await db.all(
    `select "at"."total", "at"."last", ${CHANGE_COLUMNS} ` +
      `from (select (select count(*) ${fromRecord}) as "total", ${LAST_SEQ_SQL} as "last") as "at" ` +
      `left join (${sumPrecedingSizes(page, 'version desc')}) as "page" on "page"."before" < ${MAX_HISTORY_PAGE_BYTES} ` +
      `left join ${LOG_TABLE} as l on l.seq = "page".seq ${JOIN_USER} order by l.version desc`,
    [model, id, model, id, limit, offset],
  )
  const total = Number(rows[0]?.['total'])
  const changes = rows.filter((row) => row['seq'] !== null).map(toChange)
  const next = offset + changes.length
  return {
    total,
    lastSeq: Number(rows[0]?.['last']),
    changes,
    nextOffset: limit > 0 && next < total ? next : undefined,
  }
}

/** Finds the greatest version of a record in the Log. */
export async function findLastVersion(db: Queryable, model: string, id: number): Promise<number | undefined> {
  const [row] = await db.all(
    `select max(version) as "last" from ${LOG_TABLE} where model = ? and record = ?`,
    [model, id],
  )
  return row?.['last'] === null || row === undefined ? undefined : Number(row['last'])
}
