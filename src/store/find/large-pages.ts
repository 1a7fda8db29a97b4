// A page whose records are not read all at once: first what each of them takes, then a few at a time. All of it is of one snapshot.
import type { Criteria } from '../../model/query/criteria.js'
import type { Search } from '../../model/query/search.js'
import { predicateOf } from '../sql/criteria.js'
import type { Queryable, Row, SqlValue } from '../engine/database.js'
import { compilePage } from './page-sql.js'
import { factsOf, momentOf, type Found } from './pages.js'
import { pointRead, rowOf, type PointRead } from '../sql/point-read.js'
import { walkRows, type Walk } from '../records/records.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

/** Records are read together as long as their values take no more than this; a larger one is read alone. */
const SLICE_BYTES = 1024 * 1024

export interface Weighed {
  readonly id: number
  readonly bytes: number
}

export interface MeasuredPage extends Omit<Found, 'records'> {
  readonly records: readonly Weighed[]
  readonly bytes: number
}

/** Which records a page shows, and how many bytes the values of each take. */
export async function measurePage(
  db: Queryable,
  table: Table,
  search: Search,
  { weight }: Select,
): Promise<MeasuredPage> {
  const { sql, params } = weight.stored
  const { page, count } = compilePage(
    table,
    { columns: `t."id" as "id", ${sql} as "$bytes"`, params },
    search,
  )
  const rows = await db.all(page.sql, page.params)
  if (rows.length === 0) {
    const moment = momentOf(await db.all(count.sql, count.params))
    return { ...moment, records: [], bytes: 0, last: undefined }
  }
  const { shown, ...facts } = factsOf(rows, table, search)
  const records = shown.map(weighedIn)
  return { ...facts, records, bytes: records.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** How many of these records can be read together; one at least. */
export function countTogether(records: readonly Weighed[]): number {
  return Math.max(1, firstWithin(records, SLICE_BYTES).length)
}

/** How many bytes each of the next records by id takes. */
export async function weighWalk(
  db: Queryable,
  table: Table,
  walked: Walk,
  { weight }: Select,
): Promise<Weighed[]> {
  const { sql, params } = weight.stored
  const rows = await walkRows(db, table, walked, { columns: `t."id" as "id", ${sql} as "$bytes"`, params })
  return rows.map(weighedIn)
}

function weighedIn(row: Row): Weighed {
  return { id: Number(row['id']), bytes: Number(row['$bytes']) }
}

/** How many of the first records certainly fit into so many bytes: the database measures their texts, and sends none. */
export async function countFitting(
  db: Queryable,
  { dialect, name }: Table,
  select: Select,
  { records, bytes: limitBytes }: Pick<MeasuredPage, 'records' | 'bytes'>,
): Promise<number> {
  const likely = firstWithin(records, limitBytes)
  const { sql, params } = select.weight.printed
  const reading = pointRead(`t."id" as "id", ${sql} as "$bytes"`, name, params)
  const rows = await byIds(db, dialect.json.rows('integer'), reading, likely)
  return firstWithin(rows.map(weighedIn), limitBytes).length
}

/** One record, if it may be seen. */
export interface Single {
  readonly id: number
  readonly select: Select
  readonly seen: Criteria | undefined
}

/** How many bytes the values of one record take; none if it is not there. */
export async function weighRecord(
  db: Queryable,
  { name, dialect }: Table,
  { id, select, seen }: Single,
): Promise<number> {
  const { sql, params } = select.weight.stored
  const reading = pointRead(`t."id" as "id", ${sql} as "$bytes"`, name, params)
  const row = await rowOf(db, dialect, id, reading, { seen })
  return Number(row?.['$bytes'] ?? 0)
}

/** How many bytes the values of these records take together, as far as they may be seen. */
export async function weighAll(
  db: Queryable,
  { name, dialect }: Table,
  ids: readonly number[],
  { select, seen }: Omit<Single, 'id'>,
): Promise<number> {
  const { sql, params } = select.weight.stored
  const permitted = seen && predicateOf(dialect, seen)
  const some = `t."id" in (${dialect.json.rows('integer')})${permitted ? ` and ${permitted.sql}` : ''}`
  const rows = await db.all(`select coalesce(sum(${sql}), 0) as "bytes" from ${name} as t where ${some}`, [
    ...[...params, JSON.stringify(ids)],
    ...(permitted?.params ?? []),
  ])
  return Number(rows[0]?.['bytes'])
}

/** The texts of the records, in their order, some at a time. */
export async function* readSlices(
  db: Queryable,
  { dialect }: Table,
  select: Select,
  records: readonly Weighed[],
): AsyncGenerator<readonly string[]> {
  const { printed } = select
  for (let rest = records; rest.length > 0;) {
    const slice = rest.slice(0, Math.max(1, firstWithin(rest, SLICE_BYTES).length))
    rest = rest.slice(slice.length)
    const rows = await byIds(db, dialect.json.rows('integer'), printed ?? select, slice)
    yield rows.map((row) => (printed ? String(row['text']) : JSON.stringify(select.read(row))))
  }
}

export function firstWithin(records: readonly Weighed[], limitBytes: number): readonly Weighed[] {
  let bytes = 0
  // Behind each stands a comma.
  const end = records.findIndex((record) => (bytes += record.bytes + 1) > limitBytes)
  return end < 0 ? records : records.slice(0, end)
}

/** In the order of the records. */
async function byIds(
  db: Queryable,
  some: string,
  { upToId, params }: PointRead,
  records: readonly Weighed[],
): Promise<Row[]> {
  const ids: SqlValue = JSON.stringify(records.map(({ id }) => id))
  const rows = await db.all(`${upToId} in (${some})`, [...params, ids])
  const known = new Map(rows.map((row) => [Number(row['id']), row]))
  return records.map(({ id }) => known.get(id)).filter((row) => row !== undefined)
}
