// The change feed: Changes in commit order, after a sequence number that the reader has seen.
import type { Change } from '../../wire.js'
import type { Dialect, Queryable, Row, SqlValue, Transaction } from '../engine/database.js'
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import { CHANGE_COLUMNS, JOIN_USER, sumPrecedingSizes, toChange } from './log.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { compileLimit } from '../sql/parameters.js'

const RETENTION_FLOOR_ROW = 'log-horizon'
const RESTORE_FLOOR_ROW = 'restore-floor'

/** A subselect for the sequence number of the last Change. It reads the snapshot of the statement that contains it. */
export const LAST_SEQ_SQL = `(select coalesce(max(seq), 0) from ${LOG_TABLE})`
/** A subselect for the greatest sequence number that was deleted from the Log. A reader with a smaller cursor has missed Changes. */
const RETENTION_FLOOR_SQL = `(select coalesce(max(value), 0) from ${VERSIONS_TABLE} where name = '${RETENTION_FLOOR_ROW}')`
/** A subselect for the least sequence number that a reader can have from after the last restore; 0 if the database was not restored. */
const RESTORE_FLOOR_SQL = `(select coalesce(max(value), 0) from ${VERSIONS_TABLE} where name = '${RESTORE_FLOOR_ROW}')`

export interface FeedPage {
  readonly retentionFloor: number
  readonly restoreFloor: number
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
      `from (select ${RETENTION_FLOOR_SQL} as "horizon", ${RESTORE_FLOOR_SQL} as "restored", ${LAST_SEQ_SQL} as "last") as "at" ` +
      `left join (${sumPrecedingSizes(page, 'seq')}) as "page" on 1 = 1 ` +
      `left join ${LOG_TABLE} as l on l.seq = "page".seq and "page"."before" < ${MAX_FEED_PAGE_CHARACTERS} ${JOIN_USER} order by "page".seq`,
    [since, ...(models ? [JSON.stringify(models)] : []), limit],
  )
  const [first] = rows
  const hasChange = (row: Row) => row['seq'] !== null
  return {
    retentionFloor: Number(first?.['horizon']),
    restoreFloor: Number(first?.['restored']),
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

/** Stores the floor of a restore, in the transaction that raises the sequence numbers. */
export async function setRestoreFloor(tx: Transaction, seq: number): Promise<void> {
  await tx.run(
    `insert into ${VERSIONS_TABLE} (name, value) values ('${RESTORE_FLOOR_ROW}', ?) on conflict (name) do update set value = excluded.value`,
    [seq],
  )
}

/** `findSeqAt` compares this many Changes with times up to the given one, and looks this far ahead in the Log. */
const MAX_SEQ_SCAN_ROWS = 1_000

/**
 * Finds the sequence number of the last Change up to a time. The times of the Log are in commit order, except those that nodes with wrong
 * clocks have written. A Change counts as made by a time if it, or a Change after it, has that time or an earlier one. So a time in the
 * future hides neither its Change nor the ones after it.
 */
export async function findSeqAt(db: Queryable, atMs: number): Promise<number> {
  const nearest = `select seq from ${LOG_TABLE} where at_ms <= ? order by at_ms desc limit ${MAX_SEQ_SCAN_ROWS}`
  const next = `select seq, at_ms from ${LOG_TABLE} where seq > ? order by seq limit ${MAX_SEQ_SCAN_ROWS}`
  const readSeq = async (sql: string, params: readonly SqlValue[]) => {
    const [row] = await db.all(sql, params)
    return Number(row?.['seq'] ?? 0)
  }
  let last = await readSeq(`select max(seq) as "seq" from (${nearest}) as "nearest"`, [atMs])
  // A wrong time may be nearer than the right ones, which follow in the Log.
  for (let seq = last; seq > 0;) {
    seq = await readSeq(`select max(seq) as "seq" from (${next}) as "next" where at_ms <= ?`, [last, atMs])
    last = Math.max(last, seq)
  }
  // Deleted Changes before the next one are part of its past.
  return readSeq(`select coalesce(min(seq) - 1, ?) as "seq" from ${LOG_TABLE} where seq > ?`, [last, last])
}
