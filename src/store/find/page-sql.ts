// Compiles a Search to one statement that returns the page, the total and the sequence number of the last Change, so that they match. Without
// a total it counts nothing.
import type { Search } from '../../model/query/search.js'
import { compileKnownTotal } from './known-total.js'
import { SqlScope } from '../sql/criteria.js'
import { LAST_SEQ_SQL } from '../log/feed.js'
import { MAX_SCANNED_ROWS } from './default-page-sql.js'
import { compileLimit, type SqlFragment } from '../sql/parameters.js'
import { compileSortKeys, compileOrderBy, type SortKeySql } from '../sql/order.js'
import { compileRangesAfter, compileAllRanges, type SortRange } from './cursor-range.js'
import type { ByteLimit } from '../sql/point-read.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

export interface PageSql {
  /** The rows include the sort keys. After a cursor and without a total there is one row more than the page has, if it exists. */
  readonly page: SqlFragment
  /** The totals without the page. */
  readonly count: SqlFragment
}

/** The rows, conditions and sort keys of a page. */
interface PageSource {
  readonly scope: SqlScope
  readonly rows: string
  readonly conditions: readonly string[]
  readonly keys: readonly SortKeySql[]
}

/** The selected columns of each record. */
export type PageColumns = Pick<Select, 'columns' | 'params'>

/** With a byte limit, the page has no rows if its records are larger in total. */
export function compilePage(
  table: Table,
  select: PageColumns,
  search: Search,
  byteLimit?: ByteLimit,
): PageSql {
  const scope = new SqlScope(table.dialect)
  const conditions = compileConditions(scope, table, search)
  const rows = table.historicalRows?.((value) => scope.bind(value)) ?? table.name
  const counted = `from ${rows} as t ${scope.joins} ${compileWhereClause(conditions)}`
  const total = search.uncounted
    ? NO_TOTAL
    : (compileKnownTotal(table, search) ?? scope.render(`select count(*) ${counted}`))
  const totals = `(${total.sql}) as "$total", ${LAST_SEQ_SQL} as "$seq"`
  const source = { scope, rows, conditions, keys: compileSortKeys(scope, search.sort) }
  const isDirect = isDirectPage(table, search, byteLimit)
  const totalsSql = { sql: totals, params: total.params }
  return {
    page: isDirect
      ? compileDirectPage(source, search, totalsSql, select)
      : compileIdsFirstPage(source, search, totalsSql, {
          columns: select.columns,
          params: select.params,
          byteLimit,
        }),
    count: { sql: `select ${totals}`, params: total.params },
  }
}

const NO_TOTAL: SqlFragment = { sql: 'select null', params: [] }

/** Only a total tells whether records follow the page. Without one the statement reads one more record to find out. */
function countReadRows({ limit, uncounted }: Search): number {
  return uncounted ? limit + 1 : limit
}

/** The conditions of all matches. */
export function compileConditions(scope: SqlScope, { model, dialect }: Table, search: Search): string[] {
  const timeLimit = search.isInTransaction ? dialect.timeLimitCondition : undefined
  return [
    // Before conditions that take long.
    ...(timeLimit === undefined ? [] : [timeLimit]),
    ...(model.archived && !search.archived ? ['t."archived" is not true'] : []),
    ...(search.visible ? [scope.compilePermission(search.visible)] : []),
    ...(search.where ? [scope.compileWhere(search.where)] : []),
  ]
}

function isDirectPage({ historicalRows }: Table, search: Search, byteLimit: ByteLimit | undefined): boolean {
  return historicalRows !== undefined || (isNearPage(search) && !byteLimit)
}

/**
 * True if the database computes the selected columns for few records besides those of the page. A direct statement may also compute them
 * for records that it sorts or skips, and always does so for historical rows.
 */
export function computesFewRows(table: Table, search: Search, byteLimit?: ByteLimit): boolean {
  if (!isDirectPage(table, search, byteLimit)) return true
  return search.sort.length === 0 && search.offset === 0 && !table.historicalRows
}

/** True for a small offset without a cursor. The first page of a sorted search is read like those after a cursor. */
function isNearPage({ after, offset, sort }: Search): boolean {
  return !after && offset < MAX_SCANNED_ROWS && (sort.length === 0 || offset > 0)
}

/** Selects all columns directly. */
function compileDirectPage(
  { scope, rows, conditions, keys }: PageSource,
  search: Search,
  totals: SqlFragment,
  select: PageColumns,
): SqlFragment {
  const keyColumns = scope.render(keys.map(({ column, name }) => `, ${column} as ${name}`).join(''))
  const [limit, offset] = [scope.bind(countReadRows(search)), scope.bind(search.offset)]
  const from = scope.render(
    `from ${rows} as t ${scope.joins} ${compileWhereClause(conditions)} order by ${compileOrderBy(keys)} ${compileLimit(limit)} offset ${offset}`,
  )
  return {
    sql: `select ${totals.sql}, ${select.columns}${keyColumns.sql} ${from.sql}`,
    params: [...totals.params, ...select.params, ...keyColumns.params, ...from.params],
  }
}

/** Selects ids and sort keys first, possibly from an index. Skipped records are not read, and only records of the page load related ones. */
function compileIdsFirstPage(
  source: PageSource,
  search: Search,
  totals: SqlFragment,
  { columns, params, byteLimit }: PageColumns & { readonly byteLimit: ByteLimit | undefined },
): SqlFragment {
  const { scope, keys, rows } = source
  const ids = scope.render(`with ${compilePageIds(source, search)}`)
  const pageKeys = keys.map((key) => ({ ...key, column: `"page".${key.name}` }))
  const keyColumns = pageKeys.map(({ column, name }) => `, ${column} as ${name}`).join('')
  const from = `from "page" cross join ${rows} as t where t."id" = "page"."id"`
  const size = byteLimit
    ? `, "whole" as materialized (select sum(${byteLimit.size.sql}) as "bytes" ${from})`
    : ''
  const fits = byteLimit ? ' and (select "bytes" from "whole") <= ?' : ''
  return {
    sql: `${ids.sql}${size} select ${totals.sql}, ${columns}${keyColumns} ${from}${fits} order by ${compileOrderBy(pageKeys)}`,
    params: [
      ...ids.params,
      ...(byteLimit?.size.params ?? []),
      ...totals.params,
      ...params,
      ...(byteLimit ? [byteLimit.maxBytes] : []),
    ],
  }
}

function compilePageIds(source: PageSource, search: Search): string {
  const { scope, keys } = source
  const { sort, after, offset } = search
  if (after) return compileRangeIds(source, compileRangesAfter(scope, sort, keys, after), search.limit + 1)
  const limit = countReadRows(search)
  const ranges = offset === 0 ? compileAllRanges(sort, keys) : undefined
  if (ranges) return compileRangeIds(source, ranges, limit)
  const page = compileIdSelect(source, { order: compileOrderBy(keys) })
  return `"page" as (${page} ${compileLimit(scope.bind(limit))} offset ${scope.bind(offset)})`
}

/** The first ids of the ranges. Each range is read only as far as the ranges before it leave room. */
function compileRangeIds(source: PageSource, ranges: readonly SortRange[], limit: number): string {
  const limitPlaceholder = source.scope.bind(limit)
  const parts: { readonly name: string; readonly sql: string }[] = []
  for (const range of ranges) {
    const alreadyRead = parts.map(({ name }) => ` - (select count(*) from ${name})`).join('')
    // PostgreSQL can plan with the inner limit, but not with the outer one.
    const ids = `${compileIdSelect(source, range)} ${compileLimit(limitPlaceholder)}`
    const sql =
      alreadyRead === '' ? ids : `select * from (${ids}) as "some" limit ${limitPlaceholder}${alreadyRead}`
    parts.push({ name: `"part${parts.length}"`, sql })
  }
  const page = parts.map(({ name }) => `select * from ${name}`).join(' union all ')
  return `${parts.map(({ name, sql }) => `${name} as materialized (${sql})`).join(', ')}, "page" as (${page})`
}

function compileIdSelect(
  { scope, rows, conditions, keys }: PageSource,
  { where, order }: Partial<SortRange> & Pick<SortRange, 'order'>,
): string {
  const keyColumns = keys.map(({ column, name }) => `, ${column} as ${name}`).join('')
  const all = where === undefined ? conditions : [...conditions, where]
  return `select t."id" as "id"${keyColumns} from ${rows} as t ${scope.joins} ${compileWhereClause(all)} order by ${order}`
}

export function compileWhereClause(conditions: readonly string[]): string {
  return conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''
}
