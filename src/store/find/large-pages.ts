// A page whose records are not read all at once: first what each of them takes, then a few at a time. All of it is of one snapshot.
import type { Criteria } from '../../model/query/criteria.js'
import type { Search } from '../../model/query/search.js'
import { compilePredicate } from '../sql/criteria.js'
import type { Queryable, Row, SqlValue } from '../engine/database.js'
import { compilePage } from './page-sql.js'
import { readPageFacts, readTotals, type FoundPage } from './pages.js'
import { compilePointRead, readRow, type PointRead } from '../sql/point-read.js'
import { scanRows, type IdScan } from '../records/records.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

/** Records are read together as long as their values take no more than this; a larger one is read alone. */
const SLICE_BYTES = 1024 * 1024

export interface RecordSize {
  readonly id: number
  readonly bytes: number
}

export interface MeasuredPage extends Omit<FoundPage, 'records'> {
  readonly records: readonly RecordSize[]
  readonly bytes: number
}

/** Which records a page shows, and how many bytes the values of each take. */
export async function measurePage(
  db: Queryable,
  table: Table,
  search: Search,
  { sizeSql }: Select,
): Promise<MeasuredPage> {
  const { sql, params } = sizeSql.storedBytes
  const { page, count } = compilePage(
    table,
    { columns: `t."id" as "id", ${sql} as "$bytes"`, params },
    search,
  )
  const rows = await db.all(page.sql, page.params)
  if (rows.length === 0) {
    const totals = readTotals(await db.all(count.sql, count.params))
    return { ...totals, records: [], bytes: 0, nextCursor: undefined }
  }
  const { shown, ...facts } = readPageFacts(rows, table, search)
  const records = shown.map(readRecordSize)
  return { ...facts, records, bytes: records.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** How many of these records can be read together; one at least. */
export function countFirstSlice(records: readonly RecordSize[]): number {
  return Math.max(1, takeWithinBytes(records, SLICE_BYTES).length)
}

/** How many bytes each of the next records by id takes. */
export async function measureScan(
  db: Queryable,
  table: Table,
  scan: IdScan,
  { sizeSql }: Select,
): Promise<RecordSize[]> {
  const { sql, params } = sizeSql.storedBytes
  const rows = await scanRows(db, table, scan, { columns: `t."id" as "id", ${sql} as "$bytes"`, params })
  return rows.map(readRecordSize)
}

function readRecordSize(row: Row): RecordSize {
  return { id: Number(row['id']), bytes: Number(row['$bytes']) }
}

/** How many of the first records certainly fit into so many bytes: the database measures their texts, and sends none. */
export async function countRecordsWithin(
  db: Queryable,
  { dialect, name }: Table,
  select: Select,
  { records, bytes: limitBytes }: Pick<MeasuredPage, 'records' | 'bytes'>,
): Promise<number> {
  const likely = takeWithinBytes(records, limitBytes)
  const { sql, params } = select.sizeSql.jsonBytes
  const reading = compilePointRead(`t."id" as "id", ${sql} as "$bytes"`, name, params)
  const rows = await readRowsByIds(db, dialect.json.unnest('integer'), reading, likely)
  return takeWithinBytes(rows.map(readRecordSize), limitBytes).length
}

/** One record, if it may be seen. */
export interface RecordRead {
  readonly id: number
  readonly select: Select
  readonly seen: Criteria | undefined
}

/** How many bytes the values of one record take; none if it is not there. */
export async function measureRecord(
  db: Queryable,
  { name, dialect }: Table,
  { id, select, seen }: RecordRead,
): Promise<number> {
  const { sql, params } = select.sizeSql.storedBytes
  const reading = compilePointRead(`t."id" as "id", ${sql} as "$bytes"`, name, params)
  const row = await readRow(db, dialect, id, reading, { seen })
  return Number(row?.['$bytes'] ?? 0)
}

/** How many bytes the values of these records take together, as far as they may be seen. */
export async function measureRecords(
  db: Queryable,
  { name, dialect }: Table,
  ids: readonly number[],
  { select, seen }: Omit<RecordRead, 'id'>,
): Promise<number> {
  const { sql, params } = select.sizeSql.storedBytes
  const permitted = seen && compilePredicate(dialect, seen)
  const some = `t."id" in (${dialect.json.unnest('integer')})${permitted ? ` and ${permitted.sql}` : ''}`
  const rows = await db.all(`select coalesce(sum(${sql}), 0) as "bytes" from ${name} as t where ${some}`, [
    ...[...params, JSON.stringify(ids)],
    ...(permitted?.params ?? []),
  ])
  return Number(rows[0]?.['bytes'])
}

/** The texts of the records, in their order, some at a time. */
export async function* readJsonSlices(
  db: Queryable,
  { dialect }: Table,
  select: Select,
  records: readonly RecordSize[],
): AsyncGenerator<readonly string[]> {
  const { json } = select
  for (let rest = records; rest.length > 0;) {
    const slice = rest.slice(0, Math.max(1, takeWithinBytes(rest, SLICE_BYTES).length))
    rest = rest.slice(slice.length)
    const rows = await readRowsByIds(db, dialect.json.unnest('integer'), json ?? select, slice)
    yield rows.map((row) => (json ? String(row['text']) : JSON.stringify(select.toRecord(row))))
  }
}

export function takeWithinBytes(records: readonly RecordSize[], limitBytes: number): readonly RecordSize[] {
  let bytes = 0
  // Behind each stands a comma.
  const end = records.findIndex((record) => (bytes += record.bytes + 1) > limitBytes)
  return end < 0 ? records : records.slice(0, end)
}

/** In the order of the records. */
async function readRowsByIds(
  db: Queryable,
  some: string,
  { upToId, params }: PointRead,
  records: readonly RecordSize[],
): Promise<Row[]> {
  const ids: SqlValue = JSON.stringify(records.map(({ id }) => id))
  const rows = await db.all(`${upToId} in (${some})`, [...params, ids])
  const known = new Map(rows.map((row) => [Number(row['id']), row]))
  return records.map(({ id }) => known.get(id)).filter((row) => row !== undefined)
}
