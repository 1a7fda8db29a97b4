// Pages of a search: its records, and the count of all matches of the same moment.
import type { Position } from '../../model/query/cursor.js'
import type { Search } from '../../model/query/search.js'
import type { WireRecord } from '../../wire.js'
import type { Queryable, Row } from '../engine/database.js'
import { isListing, listPrinted, listPrintedWithin, listRows, weighList } from './default-page.js'
import { compilePage } from './page-sql.js'
import { positionIn } from './cursor-range.js'
import { compileSelection, type Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

const MAX_ATTEMPTS = 3

export interface Found {
  /** The number of the last Change that it shows. */
  readonly seq: number
  readonly total: number
  readonly records: readonly WireRecord[]
  /** The last of them, if others follow. */
  readonly last: Position | undefined
}

/** What a page shows, and how much of it. */
export interface Shape {
  /** What it shows of each record where the search does not say. */
  readonly list: Select
  /** There is no page where the values of its records take more bytes. */
  readonly mostBytes: number
}

/** A page and the count of all matches, in one statement so that both are of one moment. */
export async function find(db: Queryable, table: Table, search: Search, list = table.list): Promise<Found> {
  const found = await findWithin(db, table, search, { list, mostBytes: Infinity })
  if (!found) throw new Error('a page without a limit of bytes was too large')
  return found
}

/** Undefined where the page is too large. */
export async function findWithin(
  db: Queryable,
  table: Table,
  search: Search,
  { list, mostBytes }: Shape,
): Promise<Found | undefined> {
  const select = selectOf(table, search, list)
  const mustWeigh = mayPass(select, search, mostBytes)
  if (isListing(table, search)) {
    if (mustWeigh && (await weighList(db, table, select, search)) > mostBytes) return undefined
    const rows = await listRows(db, table, select, search)
    if (rows[0]?.['id'] !== undefined) return foundIn(rows, table, select, search)
    return { ...momentOf(rows), records: [], last: undefined }
  }
  const scale = mustWeigh ? { weight: select.weight.stored, bytes: mostBytes } : undefined
  const { page, count } = compilePage(table, select, search, scale)
  for (let attempt = 1; ; attempt++) {
    const rows = await db.all(page.sql, page.params)
    if (rows.length > 0) return foundIn(rows, table, select, search)
    const moment = momentOf(await db.all(count.sql, count.params))
    const isEmpty = moment.total <= search.offset || search.limit === 0
    // A page behind a position may be empty or too large: whoever looks at the single records finds out.
    if (scale && !isEmpty) return undefined
    // Records may have come in between: then there is a page after all.
    if (isEmpty || search.after || attempt === MAX_ATTEMPTS)
      return { ...moment, records: [], last: undefined }
  }
}

export function selectOf({ dialect }: Table, { selection }: Search, list: Select): Select {
  return selection ? compileSelection(dialect, selection) : list
}

/** Whether so many records of this kind could take more bytes. */
function mayPass({ mostBytes }: Select, { limit }: Search, bytes: number): boolean {
  return bytes !== Infinity && limit > 0 && mostBytes * limit > bytes
}

function foundIn(rows: readonly Row[], table: Table, select: Select, search: Search): Found {
  const { shown, ...facts } = factsOf(rows, table, search)
  return { ...facts, records: shown.map((row) => select.read(row)) }
}

/** What the rows of a page say besides their records. */
export function factsOf(rows: readonly Row[], table: Table, { offset, limit, after, sort }: Search) {
  const moment = momentOf(rows)
  const shown = rows.slice(0, limit)
  const end = shown.at(-1)
  // Behind a position one record more than the page was asked for; the offset of such a page says nothing for certain.
  const isLast = after ? rows.length <= limit : offset + rows.length >= moment.total
  const last = end && !isLast ? positionIn(table, sort, end) : undefined
  return { ...moment, shown, last }
}

/** A page as it goes out: the texts of its records, with commas between them, or the bytes of that. */
export interface PrintedPage extends Omit<Found, 'records'> {
  readonly text: string | Uint8Array
}

/** The same, printed by the database where it can. */
export async function findPrinted(
  db: Queryable,
  table: Table,
  search: Search,
  shape: Shape,
): Promise<PrintedPage | undefined> {
  if (isListing(table, search)) {
    const select = selectOf(table, search, shape.list)
    const { mostBytes } = shape
    const row = mayPass(select, search, mostBytes)
      ? await listPrintedWithin(db, table, select, search, mostBytes)
      : await listPrinted(db, table, select, search)
    if (row) return printedIn(row, search)
    if (select.printed) return undefined
  }
  const found = await findWithin(db, table, search, shape)
  if (!found) return undefined
  const { records, ...facts } = found
  return { ...facts, text: records.map((record) => JSON.stringify(record)).join() }
}

function printedIn(row: Row, search: Search): PrintedPage {
  const { total, seq } = momentOf([row])
  const text: unknown = row['$page'] ?? ''
  if (typeof text !== 'string' && !(text instanceof Uint8Array))
    throw new Error('a page came as neither text nor bytes')
  const isLast = search.after ? row['$more'] === null : search.offset + search.limit >= total
  const id = isLast ? null : (row['$last'] ?? null)
  return { total, seq, text, last: id === null ? undefined : { values: [], id: Number(id) } }
}

export function momentOf([row]: readonly Row[]): Pick<Found, 'total' | 'seq'> {
  return { total: Number(row?.['$total']), seq: Number(row?.['$seq']) }
}
