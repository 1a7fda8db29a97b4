// A Search → the statement of its page, with the total and the number of the last Change, so that all of it is of one moment.
import type { Search } from '../model/search.js'
import { knownTotal } from './counted-search.js'
import { Scope } from './criteria-sql.js'
import { LAST_SEQ } from './feed.js'
import { WALKED } from './listing.js'
import { limitTo, type Rendered } from './parameters.js'
import { keysIn, orderOf, type KeySql } from './order-sql.js'
import { stretchesBehind, stretchesOfAll, type Stretch } from './position.js'
import type { Select } from './select.js'
import type { Table } from './table.js'

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

export function compilePage(table: Table, select: Select, search: Search): PageSql {
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
  const page = table.instead || isNear(search) ? wholePage : idsFirst
  return {
    page: page(source, search, { sql: known, params: total.params }, select),
    count: { sql: `select ${known}`, params: total.params },
  }
}

/** The first page of an order is asked for as those behind it are. */
function isNear({ after, offset, sort }: Search): boolean {
  return !after && offset < WALKED && (sort.length === 0 || offset > 0)
}

type MakePage = (source: Source, search: Search, known: Rendered, select: Select) => Rendered

/** All of each record at once. */
const wholePage: MakePage = ({ scope, rows, conditions, keys }, search, known, select) => {
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
const idsFirst: MakePage = (source, search, known, select) => {
  const { scope, keys, rows } = source
  const ids = scope.render(`with ${idsIn(source, search)}`)
  const named = keys.map((key) => ({ ...key, column: `"page".${key.name}` }))
  const own = named.map(({ column, name }) => `, ${column} as ${name}`).join('')
  return {
    sql:
      `${ids.sql} select ${known.sql}, ${select.columns}${own} from "page" cross join ${rows} as t ` +
      `where t."id" = "page"."id" order by ${orderOf(named)}`,
    params: [...ids.params, ...known.params, ...select.params],
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
