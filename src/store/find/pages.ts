// Finds a page of records together with the number of all matches.
import type { Search } from '../../model/query/search.js'
import type { Queryable } from '../engine/database.js'
import { MAX_PAGE_ATTEMPTS, findDefaultPage, mayExceed } from './default-page.js'
import { isDefaultPage } from './default-page-sql.js'
import { compilePage, computesFewRows } from './page-sql.js'
import { createEmptyPage, decodePage, joinJsonRows, readTotals } from './page-rows.js'
import type { FoundPage } from '../sql/found.js'
import { compileSelection, type Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

export interface PageOptions {
  /** The columns of each record, if the search has no selection; `table.list` by default. */
  readonly list?: Select
  /** The result of `resolveSelect`, if it is known. */
  readonly select?: Select
}

export interface LimitedPageOptions extends PageOptions {
  /** The largest size of the page; a larger one is not read. */
  readonly maxBytes: number
}

/** Reads the page and the total in one statement, so that they match. Undefined if the page is larger than `maxBytes`. */
export function findPage(
  db: Queryable,
  table: Table,
  search: Search,
  options?: PageOptions,
): Promise<FoundPage>
export function findPage(
  db: Queryable,
  table: Table,
  search: Search,
  options: LimitedPageOptions,
): Promise<FoundPage | undefined>
export async function findPage(
  db: Queryable,
  table: Table,
  search: Search,
  {
    list = table.list,
    select = resolveSelect(table, search, list),
    maxBytes = Infinity,
  }: Partial<LimitedPageOptions> = {},
): Promise<FoundPage | undefined> {
  if (isDefaultPage(table, search)) return findDefaultPage(db, table, search, { select, maxBytes })
  const byteLimit = mayExceed(select, search, maxBytes)
    ? { size: select.sizeSql.storedBytes, maxBytes }
    : undefined
  const json = computesFewRows(table, search, byteLimit) ? select.json : undefined
  const { page, count } = compilePage(table, json ?? select, search, byteLimit)
  for (let attempt = 1; ; attempt++) {
    const rows = await db.allShared(page.sql, page.params)
    if (rows.length > 0)
      return json ? joinJsonRows(rows, table, search) : decodePage(rows, table, select, search)
    const totals = readTotals(await db.all(count.sql, count.params))
    const isEmpty = isKnownEmpty(search, totals.total)
    // A page after a cursor or without a total is empty or too large here. The caller measures the records and finds out which.
    if (byteLimit && !isEmpty) return undefined
    // Records may have been created between the two statements, so the page may exist now.
    if (isEmpty || search.after || search.uncounted || attempt === MAX_PAGE_ATTEMPTS)
      return createEmptyPage(totals)
  }
}

function isKnownEmpty({ offset, limit }: Search, total: number | undefined): boolean {
  return limit === 0 || (total !== undefined && total <= offset)
}

export function resolveSelect({ dialect }: Table, { selection }: Search, list: Select): Select {
  return selection ? compileSelection(dialect, selection) : list
}
