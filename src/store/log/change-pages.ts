// Reads the Changes of a record or of a model, newest first. One rule limits the size of every page.
import type { Change } from '../../wire.js'
import type { Queryable, Row } from '../engine/database.js'
import { LAST_SEQ_SQL } from './feed.js'
import {
  CHANGE_COLUMNS,
  CHANGE_HEADER_COLUMNS,
  FROM_LOG,
  JOIN_USER,
  LOG_PAGE_BYTES,
  LOGGED_CHANGE_COLUMNS,
  sumPrecedingSizes,
  toChange,
  toLoggedChange,
  type LoggedChange,
} from './log.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { compileLimit } from '../sql/parameters.js'
import type { Table } from '../sql/table.js'

const LOG_PAGE_ROWS = 1_000

/** A range of versions of one record, or of sequence numbers of all records of a model. */
export interface ChangeRange {
  readonly model: string
  /** The range has versions of this record; without it, sequence numbers. */
  readonly id?: number
  /** The range excludes this number. */
  readonly after: number
  readonly upTo?: number | undefined
}

/** The columns that are read of each Change. */
export interface ChangeForm<T extends LoggedChange> {
  readonly columns: string
  readonly from: string
  readonly decode: (row: Row) => T
}

export const WHOLE_CHANGES: ChangeForm<Change> = { columns: CHANGE_COLUMNS, from: FROM_LOG, decode: toChange }

export const LOGGED_CHANGES: ChangeForm<LoggedChange> = {
  columns: LOGGED_CHANGE_COLUMNS,
  from: `from ${LOG_TABLE} as l`,
  decode: toLoggedChange,
}

/** Reads the Changes of a range, newest first. There is always a first page, which may be empty. */
export async function* readChangesBackwards<T extends LoggedChange>(
  db: Queryable,
  form: ChangeForm<T>,
  range: ChangeRange,
): AsyncGenerator<readonly T[], undefined> {
  for (let { upTo } = range; ;) {
    const page = await readRangePage(db, form, { ...range, upTo })
    yield page
    const last = page.at(-1)
    const reached = range.id === undefined ? last?.seq : last?.version
    if (reached === undefined || reached - 1 <= range.after) return undefined
    upTo = reached - 1
  }
}

async function readRangePage<T extends LoggedChange>(
  db: Queryable,
  { columns, from, decode }: ChangeForm<T>,
  { model, id, after, upTo = Number.MAX_SAFE_INTEGER }: ChangeRange,
): Promise<T[]> {
  const [key, record] = id === undefined ? ['seq', ''] : ['version', ' and record = ?']
  const page =
    `select seq, version, octet_length(changes) as "size" from ${LOG_TABLE} ` +
    `where model = ?${record} and ${key} > ? and ${key} <= ? order by ${key} desc limit ${LOG_PAGE_ROWS}`
  const rows = await db.all(
    `select ${columns} ${from} join (${sumPrecedingSizes(page, `${key} desc`)}) as "page" on "page".seq = l.seq ` +
      `where "page"."before" < ${LOG_PAGE_BYTES} order by l.${key} desc`,
    [model, ...(id === undefined ? [] : [id]), after, upTo],
  )
  return rows.map(decode)
}

/** Reads the first Change of each record, or the last one up to a sequence number, without values. */
export async function readOutermostChanges(
  db: Queryable,
  { model, dialect }: Table,
  ids: readonly number[],
  which: 'first' | { readonly lastUpTo: number },
): Promise<Map<number, Change>> {
  if (ids.length === 0) return new Map()
  const [version, upTo] = which === 'first' ? ['min', Number.MAX_SAFE_INTEGER] : ['max', which.lastUpTo]
  const own = `model = ? and record in (${dialect.json.unnest('integer')}) and seq <= ?`
  const rows = await db.all(
    `select ${CHANGE_HEADER_COLUMNS} ${FROM_LOG} join (select record, ${version}(version) as "one" from ${LOG_TABLE} ` +
      `where ${own} group by record) as "outer" on "outer".record = l.record and "outer"."one" = l.version where l.model = ?`,
    [model.name, JSON.stringify(ids), upTo, model.name],
  )
  return new Map(rows.map(toChange).map((change) => [change.id, change]))
}

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

/** Finds the sequence number of the last Change that replaced a value of each field. A create replaces none; purged Changes have no fields. */
export async function findLastFieldChanges(
  db: Queryable,
  model: string,
  id: number,
): Promise<Map<string, number>> {
  const last = new Map<string, number>()
  for await (const page of readChangesBackwards(db, LOGGED_CHANGES, { model, id, after: -1 }))
    for (const { action, seq, changes, purged } of page) {
      if (action === 'create' || purged) continue
      for (const name of Object.keys(changes)) last.set(name, Math.max(seq, last.get(name) ?? 0))
    }
  return last
}
