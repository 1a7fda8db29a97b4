// Reads large pages in slices from one snapshot: first the size of each record, then a few records at a time.
import type { Criteria } from '../../model/query/criteria.js'
import type { Search } from '../../model/query/search.js'
import { compilePredicate } from '../sql/criteria.js'
import type { Queryable, Row } from '../engine/database.js'
import { compilePage } from './page-sql.js'
import { readPageFacts, readTotals } from './page-rows.js'
import type { PageFacts } from '../sql/found.js'
import type { SqlFragment } from '../sql/parameters.js'
import { compilePointRead, type PointRead } from '../sql/point-read.js'
import { readRow, scanRows, type IdScan } from '../records/records.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

/** The largest size of a slice. A larger record is a slice of its own. */
const SLICE_BYTES = 1024 * 1024

export interface RecordSize {
  readonly id: number
  readonly bytes: number
}

export interface MeasuredPage extends PageFacts {
  readonly records: readonly RecordSize[]
  readonly bytes: number
}

/** The ids of the records on the page and their stored sizes. */
export async function measurePage(
  db: Queryable,
  table: Table,
  search: Search,
  { sizeSql }: Select,
): Promise<MeasuredPage> {
  const { sql, params } = selectSize(sizeSql.storedBytes)
  const { page, count } = compilePage(table, { columns: sql, params }, search)
  const rows = await db.all(page.sql, page.params)
  if (rows.length === 0) {
    const totals = readTotals(await db.all(count.sql, count.params))
    return { ...totals, records: [], bytes: 0, nextCursor: undefined }
  }
  const { pageRows, ...facts } = readPageFacts(rows, table, search)
  const records = pageRows.map(readRecordSize)
  return { ...facts, records, bytes: records.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** The number of records in the first slice; at least one. */
export function countFirstSlice(records: readonly RecordSize[]): number {
  return Math.max(1, takeWithinBytes(records, SLICE_BYTES).length)
}

/** The stored sizes of the next records by id. */
export async function measureScan(
  db: Queryable,
  table: Table,
  scan: IdScan,
  { sizeSql }: Select,
): Promise<RecordSize[]> {
  const { sql, params } = selectSize(sizeSql.storedBytes)
  const rows = await scanRows(db, table, scan, { columns: sql, params })
  return rows.map(readRecordSize)
}

/** The columns that `readRecordSize` reads. */
function selectSize({ sql, params }: SqlFragment): SqlFragment {
  return { sql: `t."id" as "id", ${sql} as "$bytes"`, params }
}

function readRecordSize(row: Row): RecordSize {
  return { id: Number(row['id']), bytes: Number(row['$bytes']) }
}

/** The number of first records whose JSON certainly fits into the bytes. The database measures the texts without sending them. */
export async function countRecordsWithin(
  db: Queryable,
  { dialect, name }: Table,
  select: Select,
  { records, bytes: limitBytes }: Pick<MeasuredPage, 'records' | 'bytes'>,
): Promise<number> {
  const candidates = takeWithinBytes(records, limitBytes)
  const read = compilePointRead(dialect, name, selectSize(select.sizeSql.jsonBytes))
  const rows = await readRowsByIds(db, read, candidates)
  return takeWithinBytes(rows.map(readRecordSize), limitBytes).length
}

/** Selects one record, if the user may read it. */
export interface RecordRead {
  readonly id: number
  readonly select: Select
  readonly visible: Criteria | undefined
}

/** The stored size of one record; 0 if it does not exist. */
export async function measureRecord(
  db: Queryable,
  { name, dialect }: Table,
  { id, select, visible }: RecordRead,
): Promise<number> {
  const read = compilePointRead(dialect, name, selectSize(select.sizeSql.storedBytes))
  const row = await readRow(db, id, read, { visible })
  return Number(row?.['$bytes'] ?? 0)
}

/** The total stored size of those of the records that the user may read. */
export async function measureRecords(
  db: Queryable,
  { name, dialect }: Table,
  ids: readonly number[],
  { select, visible }: Omit<RecordRead, 'id'>,
): Promise<number> {
  const { sql, params } = select.sizeSql.storedBytes
  const permitted = visible && compilePredicate(dialect, visible)
  const some = `t."id" in (${dialect.json.unnest('integer')})${permitted ? ` and ${permitted.sql}` : ''}`
  const rows = await db.all(`select coalesce(sum(${sql}), 0) as "bytes" from ${name} as t where ${some}`, [
    ...[...params, JSON.stringify(ids)],
    ...(permitted?.params ?? []),
  ])
  return Number(rows[0]?.['bytes'])
}

/** The JSON texts of the records in their order, slice by slice. */
export async function* readJsonSlices(
  db: Queryable,
  select: Select,
  records: readonly RecordSize[],
): AsyncGenerator<readonly string[]> {
  const { json } = select
  for (let rest = records; rest.length > 0;) {
    const slice = rest.slice(0, countFirstSlice(rest))
    rest = rest.slice(slice.length)
    const rows = await readRowsByIds(db, json ?? select, slice)
    yield rows.map((row) => (json ? String(row['text']) : JSON.stringify(select.toRecord(row))))
  }
}

export function takeWithinBytes(records: readonly RecordSize[], limitBytes: number): readonly RecordSize[] {
  let bytes = 0
  // Plus one byte for the comma.
  const end = records.findIndex((record) => (bytes += record.bytes + 1) > limitBytes)
  return end < 0 ? records : records.slice(0, end)
}

/** Reads the rows in the order of the records. */
async function readRowsByIds(
  db: Queryable,
  { dialect, upToId, params }: PointRead,
  records: readonly RecordSize[],
): Promise<Row[]> {
  const ids = JSON.stringify(records.map(({ id }) => id))
  const rows = await db.all(`${upToId} in (${dialect.json.unnest('integer')})`, [...params, ids])
  const rowsById = new Map(rows.map((row) => [Number(row['id']), row]))
  return records.map(({ id }) => rowsById.get(id)).filter((row) => row !== undefined)
}
