// The change feed: Changes in commit order, after a sequence number that the reader has seen.
import type { Change } from '../../wire.js'
import type { Dialect, Queryable, Row, Transaction } from '../engine/database.js'
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import { CHANGE_COLUMNS, JOIN_USER, sumPrecedingSizes, toChange } from './log.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { compileLimit } from '../sql/parameters.js'

const RETENTION_FLOOR_ROW = 'log-horizon'

/** A subselect for the sequence number of the last Change. It reads the snapshot of the statement that contains it. */
export const LAST_SEQ_SQL = `(select coalesce(max(seq), 0) from ${LOG_TABLE})`
/** A subselect for the greatest sequence number that was deleted from the Log. A reader with a smaller cursor has missed Changes. */
const RETENTION_FLOOR_SQL = `(select coalesce(max(value), 0) from ${VERSIONS_TABLE} where name = '${RETENTION_FLOOR_ROW}')`

export interface FeedPage {
  readonly retentionFloor: number
  /** The sequence number of the last Change in the Log. */
  readonly lastSeq: number
  readonly changes: readonly Change[]
  /** True if the size limit, not `limit`, ended the page. */
  readonly isTruncated: boolean
}

export interface FeedPageQuery {
  readonly since: number
  readonly limit: number
  /** All models if undefined. */
  readonly models?: readonly string[] | undefined
}

/** Limits the size of a page. The first Change is always included, whatever its size. */
const MAX_FEED_PAGE_CHARACTERS = 4_000_000

/** Reads the next Changes in commit order, in one statement and so from one snapshot. */
export async function readFeedPage(
  db: Queryable,
  { json }: Dialect,
  { since, limit, models }: FeedPageQuery,
): Promise<FeedPage> {
  const modelFilter = models ? ` and model in (${json.unnest('text')})` : ''
  const page = `select seq, length(changes) as "size" from ${LOG_TABLE} where seq > ?${modelFilter} order by seq ${compileLimit()}`
  const rows = await db.all(
    `select "at".*, "page".seq as "page_seq", ${CHANGE_COLUMNS} ` +
      `from (select ${RETENTION_FLOOR_SQL} as "horizon", ${LAST_SEQ_SQL} as "last") as "at" ` +
      `left join (${sumPrecedingSizes(page, 'seq')}) as "page" on 1 = 1 ` +
      `left join ${LOG_TABLE} as l on l.seq = "page".seq and "page"."before" < ${MAX_FEED_PAGE_CHARACTERS} ${JOIN_USER} order by "page".seq`,
    [since, ...(models ? [JSON.stringify(models)] : []), limit],
  )
  const [first] = rows
  const hasChange = (row: Row) => row['seq'] !== null
  return {
    retentionFloor: Number(first?.['horizon']),
    lastSeq: Number(first?.['last']),
    changes: rows.filter(hasChange).map(toChange),
    isTruncated: rows.some((row) => row['page_seq'] !== null && !hasChange(row)),
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

/** Raises the retention floor, in the transaction that deletes Changes. The floor never decreases. */
export async function raiseRetentionFloor(tx: Transaction, seq: number): Promise<void> {
  await tx.run(
    `insert into ${VERSIONS_TABLE} (name, value) values ('${RETENTION_FLOOR_ROW}', ?) on conflict (name) ` +
      `do update set value = excluded.value where excluded.value > ${VERSIONS_TABLE}.value`,
    [seq],
  )
}

/** Commit order and `at_ms` order differ because clocks differ and slow writes commit late. `findSeqAt` compares this many Changes. */
const MAX_SEQ_SCAN_ROWS = 1_000

/** Finds the last sequence number before the first Change that was made after `atMs`. */
export async function findSeqAt(db: Queryable, atMs: number): Promise<number> {
  const [row] = await db.all(
    `select min(seq) as "first", ${LAST_SEQ_SQL} as "last" from ` +
      `(select seq from ${LOG_TABLE} where at_ms > ? order by at_ms limit ${MAX_SEQ_SCAN_ROWS}) as "later"`,
    [atMs],
  )
  return row?.['first'] === null ? Number(row['last']) : Number(row?.['first']) - 1
}
