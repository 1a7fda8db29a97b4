// A Search → the statement of its page, with the total and the number of the last Change, so that all of it is of one moment.
import type { Search } from '../../model/query/search.js'
import { knownTotal } from './known-total.js'
import { Scope } from '../sql/criteria.js'
import { LAST_SEQ } from '../log/feed.js'
import { WALKED } from './default-page.js'
import { limitTo, type Rendered } from '../sql/parameters.js'
import { keysIn, orderOf, type KeySql } from '../sql/order.js'
import { stretchesBehind, stretchesOfAll, type Stretch } from './cursor-range.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

export interface PageSql {
  /** Its rows have the keys of the order, too. Behind a position it has one row more than the page, if there is one. */
  readonly page: Rendered
  readonly count: Rendered
}

/** Where the records of a page come from. */
interface Source {
  readonly scope: Scope
  readonly rows: string
  readonly conditions: readonly string[]
  readonly keys: readonly KeySql[]
}

/** What a page shows of each record. */
export type Shown = Pick<Select, 'columns' | 'params'>

/** A page that has rows only if their records weigh no more than so many bytes. */
export interface Scale {
  readonly weight: Rendered
  readonly bytes: number
}

export function compilePage(table: Table, select: Shown, search: Search, scale?: Scale): PageSql {
  const scope = new Scope(table.dialect)
  const isHidden = table.model.archived && !search.archived
  const conditions = [
    ...(isHidden ? ['t."archived" is not true'] : []),
    ...(search.seen ? [scope.holds(search.seen)] : []),
    ...(search.where ? [scope.where(search.where)] : []),
  ]
  const rows = table.instead?.((value) => scope.mark(value)) ?? table.name
  const counted = `from ${rows} as t ${scope.joins} ${whereOf(conditions)}`
  const total = knownTotal(table, search) ?? scope.render(`select count(*) ${counted}`)
  const known = `(${total.sql}) as "$total", ${LAST_SEQ} as "$seq"`
  const source = { scope, rows, conditions, keys: keysIn(scope, search.sort) }
  const isWhole = table.instead !== undefined || (isNear(search) && !scale)
  const moment = { sql: known, params: total.params }
  return {
    page: isWhole
      ? wholePage(source, search, moment, select)
      : idsFirst(source, search, moment, { ...select, scale }),
    count: { sql: `select ${known}`, params: total.params },
  }
}

/** The first page of an order is asked for as those behind it are. */
function isNear({ after, offset, sort }: Search): boolean {
  return !after && offset < WALKED && (sort.length === 0 || offset > 0)
}

/** All of each record at once. */
function wholePage(
  { scope, rows, conditions, keys }: Source,
  search: Search,
  known: Rendered,
  select: Shown,
): Rendered {
  const own = scope.render(keys.map(({ column, name }) => `, ${column} as ${name}`).join(''))
  const [limit, offset] = [scope.mark(search.limit), scope.mark(search.offset)]
  const from = scope.render(
    `from ${rows} as t ${scope.joins} ${whereOf(conditions)} order by ${orderOf(keys)} ${limitTo(limit)} offset ${offset}`,
  )
  return {
    sql: `select ${known.sql}, ${select.columns}${own.sql} ${from.sql}`,
    params: [...known.params, ...select.params, ...own.params, ...from.params],
  }
}

/** Ids and keys first, which an index may have: what is only walked over is not read, and neighbours are looked up for the page alone. */
function idsFirst(
  source: Source,
  search: Search,
  known: Rendered,
  { columns, params, scale }: Shown & { readonly scale: Scale | undefined },
): Rendered {
  const { scope, keys, rows } = source
  const ids = scope.render(`with ${idsIn(source, search)}`)
  const named = keys.map((key) => ({ ...key, column: `"page".${key.name}` }))
  const own = named.map(({ column, name }) => `, ${column} as ${name}`).join('')
  const from = `from "page" cross join ${rows} as t where t."id" = "page"."id"`
  const whole = scale ? `, "whole" as materialized (select sum(${scale.weight.sql}) as "bytes" ${from})` : ''
  const fits = scale ? ' and (select "bytes" from "whole") <= ?' : ''
  return {
    sql: `${ids.sql}${whole} select ${known.sql}, ${columns}${own} ${from}${fits} order by ${orderOf(named)}`,
    params: [
      ...[...ids.params, ...(scale?.weight.params ?? []), ...known.params, ...params],
      ...(scale ? [scale.bytes] : []),
    ],
  }
}

function idsIn(source: Source, { sort, after, limit, offset }: Search): string {
  const { scope, keys } = source
  if (after) return idsAlong(source, stretchesBehind(scope, sort, keys, after), limit + 1)
  const stretches = offset === 0 ? stretchesOfAll(sort, keys) : undefined
  if (stretches) return idsAlong(source, stretches, limit)
  const page = idsOf(source, { order: orderOf(keys) })
  return `"page" as (${page} ${limitTo(scope.mark(limit))} offset ${scope.mark(offset)})`
}

/** The first ids of stretches, each of which is looked at only as far as those before it leave room. */
function idsAlong(source: Source, stretches: readonly Stretch[], limit: number): string {
  const most = source.scope.mark(limit)
  const parts: { readonly name: string; readonly sql: string }[] = []
  for (const stretch of stretches) {
    const taken = parts.map(({ name }) => ` - (select count(*) from ${name})`).join('')
    // The inner limit is one that PostgreSQL can plan with.
    const some = `${idsOf(source, stretch)} ${limitTo(most)}`
    const sql = taken === '' ? some : `select * from (${some}) as "some" limit ${most}${taken}`
    parts.push({ name: `"part${parts.length}"`, sql })
  }
  const page = parts.map(({ name }) => `select * from ${name}`).join(' union all ')
  return `${parts.map(({ name, sql }) => `${name} as materialized (${sql})`).join(', ')}, "page" as (${page})`
}

function idsOf(
  { scope, rows, conditions, keys }: Source,
  { where, order }: Partial<Stretch> & Pick<Stretch, 'order'>,
): string {
  const own = keys.map(({ column, name }) => `, ${column} as ${name}`).join('')
  const all = where === undefined ? conditions : [...conditions, where]
  return `select t."id" as "id"${own} from ${rows} as t ${scope.joins} ${whereOf(all)} order by ${order}`
}

function whereOf(conditions: readonly string[]): string {
  return conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''
}
