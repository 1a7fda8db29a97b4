// The Log as it is followed: by its numbers, from one that the reader has seen.
import type { Change } from '../../wire.js'
import type { Dialect, Queryable, Row, Transaction } from '../engine/database.js'
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import { CHANGE_COLUMNS, LOG_TABLE, toChange, JOIN_USER } from './log.js'
import { compileLimit } from '../sql/parameters.js'

const RETENTION_FLOOR_ROW = 'log-horizon'

/** To stand in a select: the number of the last Change, of the same moment as the rest of the statement. */
export const LAST_SEQ_SQL = `(select coalesce(max(seq), 0) from ${LOG_TABLE})`
/** The greatest number that was taken out of the Log: whoever has seen less than that has missed something. */
const RETENTION_FLOOR_SQL = `(select coalesce(max(value), 0) from ${VERSIONS_TABLE} where name = '${RETENTION_FLOOR_ROW}')`

export interface FeedPage {
  readonly retentionFloor: number
  /** The number of the last Change there is. */
  readonly lastSeq: number
  readonly changes: readonly Change[]
  /** Whether there would have been more, but for their size. */
  readonly isTruncated: boolean
}

export interface FeedPageQuery {
  readonly since: number
  readonly limit: number
  /** All if undefined. */
  readonly models?: readonly string[] | undefined
}

/** A page has no more, however many Changes were asked for; one alone may be as large as it is. */
const MAX_FEED_PAGE_CHARACTERS = 4_000_000

/** The next Changes in commit order: all of it of one moment. */
export async function readFeedPage(
  db: Queryable,
  { json }: Dialect,
  { since, limit, models }: FeedPageQuery,
): Promise<FeedPage> {
  const modelFilter = models ? ` and model in (${json.unnest('text')})` : ''
  const some = `select seq, length(changes) as "size" from ${LOG_TABLE} where seq > ?${modelFilter} order by seq ${compileLimit()}`
  const sized = `select seq, sum("size") over (order by seq) - "size" as "before" from (${some}) as "some"`
  const rows = await db.all(
    `select "at".*, "page".seq as "page_seq", ${CHANGE_COLUMNS} ` +
      `from (select ${RETENTION_FLOOR_SQL} as "horizon", ${LAST_SEQ_SQL} as "last") as "at" ` +
      `left join (${sized}) as "page" on 1 = 1 ` +
      `left join ${LOG_TABLE} as l on l.seq = "page".seq and "page"."before" < ${MAX_FEED_PAGE_CHARACTERS} ${JOIN_USER} order by "page".seq`,
    [since, ...(models ? [JSON.stringify(models)] : []), limit],
  )
  const [first] = rows
  const isThere = (row: Row) => row['seq'] !== null
  return {
    retentionFloor: Number(first?.['horizon']),
    lastSeq: Number(first?.['last']),
    changes: rows.filter(isThere).map(toChange),
    isTruncated: rows.some((row) => row['page_seq'] !== null && !isThere(row)),
  }
}

export async function readLastSeq(db: Queryable): Promise<number> {
  const [row] = await db.all(`select ${LAST_SEQ_SQL} as "last"`)
  return Number(row?.['last'])
}

export async function readRetentionFloor(db: Queryable): Promise<number> {
  const [row] = await db.all(`select ${RETENTION_FLOOR_SQL} as "horizon"`)
  return Number(row?.['horizon'])
}

/** In the transaction that takes Changes out of the Log. It never goes back. */
export async function raiseRetentionFloor(tx: Transaction, seq: number): Promise<void> {
  await tx.run(
    `insert into ${VERSIONS_TABLE} (name, value) values ('${RETENTION_FLOOR_ROW}', ?) on conflict (name) ` +
      `do update set value = excluded.value where excluded.value > ${VERSIONS_TABLE}.value`,
    [seq],
  )
}

/** As many as an answer looks at to find the first Change that was made after a moment: clocks differ, and slow writes come late. */
const MAX_SEQ_SCAN_ROWS = 1_000

/** The last Change that was committed before the first one made after this moment. */
export async function findSeqAt(db: Queryable, atMs: number): Promise<number> {
  const [row] = await db.all(
    `select min(seq) as "first", ${LAST_SEQ_SQL} as "last" from ` +
      `(select seq from ${LOG_TABLE} where at_ms > ? order by at_ms limit ${MAX_SEQ_SCAN_ROWS}) as "later"`,
    [atMs],
  )
  return row?.['first'] === null ? Number(row['last']) : Number(row?.['first']) - 1
}
