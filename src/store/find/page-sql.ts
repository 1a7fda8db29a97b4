// A Search → the statement of its page, with the total and the number of the last Change, so that all of it is of one moment.
import type { Search } from '../../model/query/search.js'
import { compileKnownTotal } from './known-total.js'
import { SqlScope } from '../sql/criteria.js'
import { LAST_SEQ_SQL } from '../log/feed.js'
import { MAX_SCANNED_ROWS } from './default-page.js'
import { compileLimit, type SqlFragment } from '../sql/parameters.js'
import { compileSortKeys, compileOrderBy, type SortKeySql } from '../sql/order.js'
import { compileRangesAfter, compileAllRanges, type SortRange } from './cursor-range.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

export interface PageSql {
  /** Its rows have the keys of the order, too. Behind a position it has one row more than the page, if there is one. */
  readonly page: SqlFragment
  readonly count: SqlFragment
}

/** Where the records of a page come from. */
interface PageSource {
  readonly scope: SqlScope
  readonly rows: string
  readonly conditions: readonly string[]
  readonly keys: readonly SortKeySql[]
}

/** What a page shows of each record. */
export type PageColumns = Pick<Select, 'columns' | 'params'>

/** A page that has rows only if their records weigh no more than so many bytes. */
export interface ByteLimit {
  readonly weight: SqlFragment
  readonly bytes: number
}

export function compilePage(
  table: Table,
  select: PageColumns,
  search: Search,
  byteLimit?: ByteLimit,
): PageSql {
  const scope = new SqlScope(table.dialect)
  const isHidden = table.model.archived && !search.archived
  const conditions = [
    ...(isHidden ? ['t."archived" is not true'] : []),
    ...(search.seen ? [scope.compilePermission(search.seen)] : []),
    ...(search.where ? [scope.compileWhere(search.where)] : []),
  ]
  const rows = table.historicalRows?.((value) => scope.bind(value)) ?? table.name
  const counted = `from ${rows} as t ${scope.joins} ${compileWhereClause(conditions)}`
  const total = compileKnownTotal(table, search) ?? scope.render(`select count(*) ${counted}`)
  const known = `(${total.sql}) as "$total", ${LAST_SEQ_SQL} as "$seq"`
  const source = { scope, rows, conditions, keys: compileSortKeys(scope, search.sort) }
  const isDirect = table.historicalRows !== undefined || (isNearPage(search) && !byteLimit)
  const facts = { sql: known, params: total.params }
  return {
    page: isDirect
      ? compileDirectPage(source, search, facts, select)
      : compileIdsFirstPage(source, search, facts, { ...select, scale: byteLimit }),
    count: { sql: `select ${known}`, params: total.params },
  }
}

/** The first page of an order is asked for as those behind it are. */
function isNearPage({ after, offset, sort }: Search): boolean {
  return !after && offset < MAX_SCANNED_ROWS && (sort.length === 0 || offset > 0)
}

/** All of each record at once. */
function compileDirectPage(
  { scope, rows, conditions, keys }: PageSource,
  search: Search,
  known: SqlFragment,
  select: PageColumns,
): SqlFragment {
  const own = scope.render(keys.map(({ column, name }) => `, ${column} as ${name}`).join(''))
  const [limit, offset] = [scope.bind(search.limit), scope.bind(search.offset)]
  const from = scope.render(
    `from ${rows} as t ${scope.joins} ${compileWhereClause(conditions)} order by ${compileOrderBy(keys)} ${compileLimit(limit)} offset ${offset}`,
  )
  return {
    sql: `select ${known.sql}, ${select.columns}${own.sql} ${from.sql}`,
    params: [...known.params, ...select.params, ...own.params, ...from.params],
  }
}

/** Ids and keys first, which an index may have: what is only walked over is not read, and neighbours are looked up for the page alone. */
function compileIdsFirstPage(
  source: PageSource,
  search: Search,
  known: SqlFragment,
  { columns, params, scale }: PageColumns & { readonly scale: ByteLimit | undefined },
): SqlFragment {
  const { scope, keys, rows } = source
  const ids = scope.render(`with ${compilePageIds(source, search)}`)
  const named = keys.map((key) => ({ ...key, column: `"page".${key.name}` }))
  const own = named.map(({ column, name }) => `, ${column} as ${name}`).join('')
  const from = `from "page" cross join ${rows} as t where t."id" = "page"."id"`
  const whole = scale ? `, "whole" as materialized (select sum(${scale.weight.sql}) as "bytes" ${from})` : ''
  const fits = scale ? ' and (select "bytes" from "whole") <= ?' : ''
  return {
    sql: `${ids.sql}${whole} select ${known.sql}, ${columns}${own} ${from}${fits} order by ${compileOrderBy(named)}`,
    params: [
      ...[...ids.params, ...(scale?.weight.params ?? []), ...known.params, ...params],
      ...(scale ? [scale.bytes] : []),
    ],
  }
}

function compilePageIds(source: PageSource, { sort, after, limit, offset }: Search): string {
  const { scope, keys } = source
  if (after) return compileRangeIds(source, compileRangesAfter(scope, sort, keys, after), limit + 1)
  const ranges = offset === 0 ? compileAllRanges(sort, keys) : undefined
  if (ranges) return compileRangeIds(source, ranges, limit)
  const page = compileIdSelect(source, { order: compileOrderBy(keys) })
  return `"page" as (${page} ${compileLimit(scope.bind(limit))} offset ${scope.bind(offset)})`
}

/** The first ids of stretches, each of which is looked at only as far as those before it leave room. */
function compileRangeIds(source: PageSource, ranges: readonly SortRange[], limit: number): string {
  const limitPlaceholder = source.scope.bind(limit)
  const parts: { readonly name: string; readonly sql: string }[] = []
  for (const stretch of ranges) {
    const taken = parts.map(({ name }) => ` - (select count(*) from ${name})`).join('')
    // The inner limit is one that PostgreSQL can plan with.
    const some = `${compileIdSelect(source, stretch)} ${compileLimit(limitPlaceholder)}`
    const sql = taken === '' ? some : `select * from (${some}) as "some" limit ${limitPlaceholder}${taken}`
    parts.push({ name: `"part${parts.length}"`, sql })
  }
  const page = parts.map(({ name }) => `select * from ${name}`).join(' union all ')
  return `${parts.map(({ name, sql }) => `${name} as materialized (${sql})`).join(', ')}, "page" as (${page})`
}

function compileIdSelect(
  { scope, rows, conditions, keys }: PageSource,
  { where, order }: Partial<SortRange> & Pick<SortRange, 'order'>,
): string {
  const own = keys.map(({ column, name }) => `, ${column} as ${name}`).join('')
  const all = where === undefined ? conditions : [...conditions, where]
  return `select t."id" as "id"${own} from ${rows} as t ${scope.joins} ${compileWhereClause(all)} order by ${order}`
}

function compileWhereClause(conditions: readonly string[]): string {
  return conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''
}
