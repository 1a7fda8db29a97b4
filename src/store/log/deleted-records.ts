// Finds deleted records in the Log: a record is deleted if its last Change is a delete. The Log always has the last Change of a record.
import type { Change } from '../../wire.js'
import type { Queryable } from '../engine/database.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { compileLimit } from '../sql/parameters.js'
import type { Table } from '../sql/table.js'
import { MAX_HISTORY_PAGE_BYTES, readOutermostChanges } from './change-pages.js'
import {
  CHANGE_COLUMNS,
  CHANGE_HEADER_COLUMNS,
  FROM_LOG,
  JOIN_USER,
  sumPrecedingSizes,
  toChange,
} from './log.js'
import { findCreation, Rewind, type Revision } from './rewind.js'

export interface DeletePage {
  /** The deletes of records that are deleted now, newest first. */
  readonly changes: readonly Change[]
  /** The sequence number of the last delete that was examined; undefined if no delete is before it. */
  readonly next: number | undefined
}

/** Examines the deletes of a model before a sequence number, newest first. Reads at most `limit` of them, in one statement. */
export async function readDeletePage(
  db: Queryable,
  model: string,
  { before, limit }: { readonly before: number; readonly limit: number },
): Promise<DeletePage> {
  // The partial index `verso_log_deleted` serves this condition only if it contains the action as a literal.
  const page =
    `select seq, octet_length(changes) as "size" from ${LOG_TABLE} ` +
    `where model = ? and action = 'delete' and seq < ? order by seq desc ${compileLimit()}`
  const later = `select 1 from ${LOG_TABLE} as "later" where "later".model = l.model and "later".record = l.record and "later".version > l.version`
  const rows = await db.all(
    `select "page".seq as "page_seq", "page"."before", ${CHANGE_COLUMNS} from (${sumPrecedingSizes(page, 'seq desc')}) as "page" ` +
      `left join ${LOG_TABLE} as l on l.seq = "page".seq and "page"."before" < ${MAX_HISTORY_PAGE_BYTES} and not exists (${later}) ` +
      `${JOIN_USER} order by "page".seq desc`,
    [model, before, limit],
  )
  const examined = rows.filter((row) => Number(row['before']) < MAX_HISTORY_PAGE_BYTES)
  const isLast = rows.length < limit && examined.length === rows.length
  return {
    changes: examined.filter((row) => row['seq'] !== null).map(toChange),
    next: isLast ? undefined : Number(examined.at(-1)?.['page_seq']),
  }
}

/** Builds the last revision of each deleted record, as its timeline does, but with two statements for all of them. */
export async function readDeleteRevisions(
  db: Queryable,
  table: Table,
  deletes: readonly Change[],
): Promise<Revision[]> {
  const ids = deletes.map(({ id }) => id)
  const firstChanges = await readOutermostChanges(db, table, ids, 'first')
  const precedingChanges = await readPrecedingChanges(db, table, deletes)
  return deletes.map((logged): Revision => {
    const rewind = new Rewind(table, findCreation(undefined, firstChanges.get(logged.id)), undefined, logged)
    const { changes } = rewind.undo(logged)
    const before = rewind.copyState(precedingChanges.get(logged.id))
    return { change: { ...logged, changes }, before, after: 'gone' }
  })
}

/** Reads the Change before each of these Changes of different records, without values. */
async function readPrecedingChanges(
  db: Queryable,
  { dialect }: Table,
  changes: readonly Change[],
): Promise<Map<number, Change>> {
  if (changes.length === 0) return new Map()
  const rows = await db.all(
    `select ${CHANGE_HEADER_COLUMNS} ${FROM_LOG} join ${LOG_TABLE} as "next" on "next".model = l.model and "next".record = l.record ` +
      `and l.version = "next".version - 1 where "next".seq in (${dialect.json.unnest('integer')})`,
    [JSON.stringify(changes.map(({ seq }) => seq))],
  )
  return new Map(rows.map(toChange).map((change) => [change.id, change]))
}
