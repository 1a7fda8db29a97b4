// Finds a page that holds all matches, because the whole table has no more records than the page. One scan finds and counts them and builds
// their JSON text.
import type { Search } from '../../model/query/search.js'
import type { Queryable } from '../engine/database.js'
import { LAST_SEQ_SQL } from '../log/feed.js'
import { SqlScope } from '../sql/criteria.js'
import type { FoundPage } from '../sql/found.js'
import { compileOrderBy, compileSortKeys } from '../sql/order.js'
import { compileLimit, type SqlFragment } from '../sql/parameters.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'
import { readJsonPage } from './page-rows.js'
import { compileConditions, compileWhereClause } from './page-sql.js'
import type { MeasuredSizes } from './table-sizes.js'

/**
 * Its first parameter is a sequence number, which the fragment does not include: the statement scans nothing if that is not the last Change.
 * Undefined if the database cannot build JSON text, and for a search that skips records.
 */
export function compileSmallPage(table: Table, { json }: Select, search: Search): SqlFragment | undefined {
  const { dialect, name, historicalRows } = table
  if (!json || historicalRows || search.after || search.offset > 0) return undefined
  const scope = new SqlScope(dialect)
  const conditions = compileConditions(scope, table, search)
  const keys = compileSortKeys(scope, search.sort)
  const keyColumns = scope.render(keys.map((key) => `, ${key.column} as ${key.name}`).join(''))
  const order = compileOrderBy(
    keys.map((key) => ({ descending: key.descending, column: key.name })),
    '"id"',
  )
  // A cross join starts with its first table, so without a row there the others are not scanned.
  const from = scope.render(
    `from "unchanged" cross join ${name} as t ${scope.joins} ${compileWhereClause(conditions)} order by ${compileOrderBy(keys)} ${compileLimit(scope.bind(search.limit))}`,
  )
  return {
    sql:
      `with "unchanged" as materialized (select 1 as "one" where ${LAST_SEQ_SQL} = ?) ` +
      `select count(*) as "$total", ${LAST_SEQ_SQL} as "$seq", ${dialect.joinJson('"text"', order)} as "$page" ` +
      `from (select t."id" as "id", ${json.text.sql} as "text"${keyColumns.sql} ${from.sql}) as "page"`,
    params: [...json.text.params, ...keyColumns.params, ...from.params],
  }
}

/** The parts of a SearchPlan that the page needs. */
interface SmallSearch {
  readonly table: Table
  readonly search: Search
  readonly select: Select
  readonly smallPage: SqlFragment | undefined
}

/** Reads the page if all matches fit on it and into the bytes. Undefined otherwise, and if the sizes are no longer those of the tables. */
export async function findSmallPage(
  db: Queryable,
  { table, search, select, smallPage }: SmallSearch,
  { sizes, seq }: MeasuredSizes,
  maxBytes: number,
): Promise<FoundPage | undefined> {
  const rows = sizes.get(table.model)?.rows ?? Infinity
  if (!smallPage || rows > search.limit || rows * select.maxBytes > maxBytes) return undefined
  const [row] = await db.all(smallPage.sql, [seq, ...smallPage.params])
  return row?.['$seq'] === seq ? readJsonPage(row, search) : undefined
}
