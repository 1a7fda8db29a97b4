// Finds a page of records together with the number of all matches.
import type { PageCursor } from '../../model/query/cursor.js'
import type { Search } from '../../model/query/search.js'
import type { WireRecord } from '../../wire.js'
import type { Queryable, Row } from '../engine/database.js'
import {
  MAX_PAGE_ATTEMPTS,
  isDefaultPage,
  listPrinted,
  listPrintedWithin,
  readDefaultPageRows,
  measureDefaultPage,
} from './default-page.js'
import { compilePage } from './page-sql.js'
import { readCursor } from './cursor-range.js'
import { compileSelection, type Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

export interface FoundPage {
  /** The sequence number of the last Change that the page reflects. */
  readonly seq: number
  readonly total: number
  readonly records: readonly WireRecord[]
  /** The cursor of the last record, if others follow. */
  readonly nextCursor: PageCursor | undefined
}

export interface PageOptions {
  /** The columns of each record, if the search has no selection. */
  readonly list: Select
  /** The largest size of the page; a larger one is not read. */
  readonly maxBytes: number
}

/** Reads the page and the total in one statement, so that they match. */
export async function findPage(
  db: Queryable,
  table: Table,
  search: Search,
  list = table.list,
): Promise<FoundPage> {
  const found = await findPageWithin(db, table, search, { list, maxBytes: Infinity })
  if (!found) throw new Error('a page without a byte limit exceeded it')
  return found
}

/** Undefined if the page is too large. */
export async function findPageWithin(
  db: Queryable,
  table: Table,
  search: Search,
  { list, maxBytes }: PageOptions,
): Promise<FoundPage | undefined> {
  const select = resolveSelect(table, search, list)
  const mustMeasure = mayExceed(select, search, maxBytes)
  if (isDefaultPage(table, search)) {
    if (mustMeasure && (await measureDefaultPage(db, table, select, search)) > maxBytes) return undefined
    const rows = await readDefaultPageRows(db, table, select, search)
    if (rows[0]?.['id'] !== undefined) return readFoundPage(rows, table, select, search)
    return { ...readTotals(rows), records: [], nextCursor: undefined }
  }
  const byteLimit = mustMeasure ? { size: select.sizeSql.storedBytes, maxBytes } : undefined
  const { page, count } = compilePage(table, select, search, byteLimit)
  for (let attempt = 1; ; attempt++) {
    const rows = await db.all(page.sql, page.params)
    if (rows.length > 0) return readFoundPage(rows, table, select, search)
    const totals = readTotals(await db.all(count.sql, count.params))
    const isEmpty = totals.total <= search.offset || search.limit === 0
    // A page after a cursor is empty or too large here. The caller measures the records and finds out which.
    if (byteLimit && !isEmpty) return undefined
    // Records may have been created between the two statements, so the page may exist now.
    if (isEmpty || search.after || attempt === MAX_PAGE_ATTEMPTS)
      return { ...totals, records: [], nextCursor: undefined }
  }
}

export function resolveSelect({ dialect }: Table, { selection }: Search, list: Select): Select {
  return selection ? compileSelection(dialect, selection) : list
}

/** True if the largest possible page exceeds the bytes. */
function mayExceed({ maxBytes }: Select, { limit }: Search, bytes: number): boolean {
  return bytes !== Infinity && limit > 0 && maxBytes * limit > bytes
}

function readFoundPage(rows: readonly Row[], table: Table, select: Select, search: Search): FoundPage {
  const { pageRows, ...facts } = readPageFacts(rows, table, search)
  return { ...facts, records: pageRows.map((row) => select.toRecord(row)) }
}

/** The totals, the rows of the page without the additional one, and the next cursor. */
export function readPageFacts(rows: readonly Row[], table: Table, { offset, limit, after, sort }: Search) {
  const totals = readTotals(rows)
  const pageRows = rows.slice(0, limit)
  const last = pageRows.at(-1)
  // After a cursor the statement reads one record more than the page; the offset of such a page is not reliable.
  const isLast = after ? rows.length <= limit : offset + rows.length >= totals.total
  const nextCursor = last && !isLast ? readCursor(table, sort, last) : undefined
  return { ...totals, pageRows, nextCursor }
}

/** A page as JSON: the texts of its records, separated by commas, as a string or as bytes. */
export interface JsonPage extends Omit<FoundPage, 'records'> {
  readonly text: string | Uint8Array
}

/** The same, printed by the database where it can. */
export async function findPrinted(
  db: Queryable,
  table: Table,
  search: Search,
  options: PageOptions,
): Promise<JsonPage | undefined> {
  if (isDefaultPage(table, search)) {
    const select = resolveSelect(table, search, options.list)
    const { maxBytes } = options
    const row = mayExceed(select, search, maxBytes)
      ? await listPrintedWithin(db, table, search, { select, maxBytes })
      : await listPrinted(db, table, select, search)
    if (row) return readJsonPage(row, search)
    if (select.json) return undefined
  }
  const found = await findPageWithin(db, table, search, options)
  if (!found) return undefined
  const { records, ...facts } = found
  return { ...facts, text: records.map((record) => JSON.stringify(record)).join() }
}

function readJsonPage(row: Row, search: Search): JsonPage {
  const { total, seq } = readTotals([row])
  const text: unknown = row['$page'] ?? ''
  if (typeof text !== 'string' && !(text instanceof Uint8Array))
    throw new Error('the JSON of a page is neither text nor bytes')
  const isLast = search.after ? row['$more'] === null : search.offset + search.limit >= total
  const id = isLast ? null : (row['$last'] ?? null)
  return { total, seq, text, nextCursor: id === null ? undefined : { values: [], id: Number(id) } }
}

export function readTotals([row]: readonly Row[]): Pick<FoundPage, 'total' | 'seq'> {
  return { total: Number(row?.['$total']), seq: Number(row?.['$seq']) }
}
