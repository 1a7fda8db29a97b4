// The Log as it is followed: by its numbers, from one that the reader has seen.
import type { Change } from '../../wire.js'
import type { Dialect, Queryable, Row, Transaction } from '../engine/database.js'
import { EPOCH_TABLE } from '../auth/permissions-version.js'
import { CHANGE_COLUMNS, LOG_TABLE, toChange, WITH_USER } from './log.js'
import { limitTo } from '../sql/parameters.js'

const HORIZON = 'log-horizon'

/** To stand in a select: the number of the last Change, of the same moment as the rest of the statement. */
export const LAST_SEQ = `(select coalesce(max(seq), 0) from ${LOG_TABLE})`
/** The greatest number that was taken out of the Log: whoever has seen less than that has missed something. */
const HORIZON_SEQ = `(select coalesce(max(value), 0) from ${EPOCH_TABLE} where name = '${HORIZON}')`

export interface FeedPage {
  readonly horizon: number
  /** The number of the last Change there is. */
  readonly last: number
  readonly changes: readonly Change[]
  /** Whether there would have been more, but for their size. */
  readonly isCut: boolean
}

export interface FeedQuestion {
  readonly since: number
  readonly limit: number
  /** All if undefined. */
  readonly models?: readonly string[] | undefined
}

/** A page has no more, however many Changes were asked for; one alone may be as large as it is. */
const MAX_CHARACTERS = 4_000_000

/** The next Changes in commit order: all of it of one moment. */
export async function feedPage(
  db: Queryable,
  { json }: Dialect,
  { since, limit, models }: FeedQuestion,
): Promise<FeedPage> {
  const among = models ? ` and model in (${json.rows('text')})` : ''
  const some = `select seq, length(changes) as "size" from ${LOG_TABLE} where seq > ?${among} order by seq ${limitTo()}`
  const sized = `select seq, sum("size") over (order by seq) - "size" as "before" from (${some}) as "some"`
  const rows = await db.all(
    `select "at".*, "page".seq as "page_seq", ${CHANGE_COLUMNS} ` +
      `from (select ${HORIZON_SEQ} as "horizon", ${LAST_SEQ} as "last") as "at" ` +
      `left join (${sized}) as "page" on 1 = 1 ` +
      `left join ${LOG_TABLE} as l on l.seq = "page".seq and "page"."before" < ${MAX_CHARACTERS} ${WITH_USER} order by "page".seq`,
    [since, ...(models ? [JSON.stringify(models)] : []), limit],
  )
  const [first] = rows
  const isThere = (row: Row) => row['seq'] !== null
  return {
    horizon: Number(first?.['horizon']),
    last: Number(first?.['last']),
    changes: rows.filter(isThere).map(toChange),
    isCut: rows.some((row) => row['page_seq'] !== null && !isThere(row)),
  }
}

export async function lastSeq(db: Queryable): Promise<number> {
  const [row] = await db.all(`select ${LAST_SEQ} as "last"`)
  return Number(row?.['last'])
}

export async function horizonOf(db: Queryable): Promise<number> {
  const [row] = await db.all(`select ${HORIZON_SEQ} as "horizon"`)
  return Number(row?.['horizon'])
}

/** In the transaction that takes Changes out of the Log. It never goes back. */
export async function raiseHorizon(tx: Transaction, seq: number): Promise<void> {
  await tx.run(
    `insert into ${EPOCH_TABLE} (name, value) values ('${HORIZON}', ?) on conflict (name) ` +
      `do update set value = excluded.value where excluded.value > ${EPOCH_TABLE}.value`,
    [seq],
  )
}

/** As many as an answer looks at to find the first Change that was made after a moment: clocks differ, and slow writes come late. */
const LOOKED_AT = 1_000

/** The last Change that was committed before the first one made after this moment. */
export async function seqAt(db: Queryable, atMs: number): Promise<number> {
  const [row] = await db.all(
    `select min(seq) as "first", ${LAST_SEQ} as "last" from ` +
      `(select seq from ${LOG_TABLE} where at_ms > ? order by at_ms limit ${LOOKED_AT}) as "later"`,
    [atMs],
  )
  return row?.['first'] === null ? Number(row['last']) : Number(row?.['first']) - 1
}
