// Decodes the rows of a page.
import type { Search } from '../../model/query/search.js'
import type { Row } from '../engine/database.js'
import { FoundPage, type PageFacts } from '../sql/found.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'
import { readCursor } from './cursor-range.js'

type Totals = Pick<PageFacts, 'total' | 'seq'>

export function decodePage(rows: readonly Row[], table: Table, select: Select, search: Search): FoundPage {
  const { pageRows, ...facts } = readPageFacts(rows, table, search)
  return new FoundPage(
    facts,
    pageRows.map((row) => select.toRecord(row)),
  )
}

/** A page of rows whose column `text` is the JSON text of a record. */
export function joinJsonRows(rows: readonly Row[], table: Table, search: Search): FoundPage {
  const { pageRows, ...facts } = readPageFacts(rows, table, search)
  return new FoundPage(facts, pageRows.map((row) => String(row['text'])).join())
}

/** Reads a page from one row with `$total`, `$seq` and `$page`, its JSON text. The row of a page that others follow also has `$last`. */
export function readJsonPage(row: Row, { after, offset, limit }: Search): FoundPage {
  const { total = 0, seq } = readTotals([row])
  const text: unknown = row['$page'] ?? ''
  if (typeof text !== 'string' && !(text instanceof Uint8Array))
    throw new Error('the JSON of a page is neither text nor bytes')
  const isLast = after ? row['$more'] === null : offset + limit >= total
  const id = isLast ? null : (row['$last'] ?? null)
  return new FoundPage(
    { total, seq, nextCursor: id === null ? undefined : { values: [], id: Number(id) } },
    text,
  )
}

/** The totals, the rows of the page without the additional one, and the next cursor. */
export function readPageFacts(rows: readonly Row[], table: Table, search: Search) {
  const { offset, limit, after, sort } = search
  const { total, seq } = readTotals(rows)
  const pageRows = rows.slice(0, limit)
  const last = pageRows.at(-1)
  // After a cursor and without a total the statement reads one record more than the page. The offset after a cursor is not reliable.
  const isLast = after || total === undefined ? rows.length <= limit : offset + rows.length >= total
  const nextCursor = last && !isLast ? readCursor(table, sort, last) : undefined
  return { total, seq, pageRows, nextCursor }
}

export function readTotals([row]: readonly Row[]): Totals {
  const total = row?.['$total'] ?? null
  return { total: total === null ? undefined : Number(total), seq: Number(row?.['$seq']) }
}

export function createEmptyPage({ total, seq }: Totals): FoundPage {
  return new FoundPage({ total, seq, nextCursor: undefined }, '')
}
