// A page by id of all that a find shows, where counters know how many there are and where the page begins: nothing is counted, and hardly
// anything walked over. Each text is made once for what it shows.
import type { Model } from '../model/model.js'
import type { Search } from '../model/search.js'
import { COUNT_TABLE, visibleSql, WHOLE_LEVEL } from './counted-fields.js'
import type { Queryable, Row, SqlValue } from './database.js'
import { LAST_SEQ } from './feed.js'
import { limitTo } from './parameters.js'
import { placeOf, placeSql } from './rank.js'
import type { Select } from './select.js'
import type { Table } from './table.js'

const MAX_ATTEMPTS = 3
const LIMIT = limitTo()

/** Walking over so many rows is quicker than looking for the block. */
export const WALKED = 256

interface Texts {
  /** Its parameters, behind those of what is shown: limit, offset. */
  readonly near: string
  /** From an id on: the id, limit, and how many are left out from there. */
  readonly from: string
  /** The place of the offset is found in the same statement: the offsets of its levels, what is shown, limit, offset. */
  readonly far: string
  /** Behind an id. Of rows: that id and one more than the limit, which tells whether others follow. */
  readonly behind: string
}

interface Listing {
  readonly rows: Texts
  /**
   * One row with the texts of all records of the page and the last id, where the database can print them. `behind` also tells whether others
   * follow, for which its parameters stand before all others, too: the id and the limit.
   */
  readonly printed: Texts | undefined
  /** The total alone. */
  readonly count: string
}

const LISTINGS = new WeakMap<Select, Listing>()

/** Whether a search is for all records of the model that are shown when nothing is asked. */
export function isListing({ model, instead }: Table, { where, seen, sort, archived }: Search): boolean {
  return !where && !seen && sort.length === 0 && !instead && !(archived && model.archived)
}

/** Rows with `$total` and `$seq`; those of a page without records have no more. */
export async function listRows(db: Queryable, table: Table, select: Select, search: Search): Promise<Row[]> {
  const { rows, count } = listingOf(table, select)
  for (let attempt = 1; ; attempt++) {
    const { after, limit, offset } = search
    const page = after
      ? await db.all(rows.behind, [...select.params, after.id, limit + 1])
      : await ask(db, table, { ...rows, count, shown: select.params }, search)
    if (page.length > 0) return page
    const [total] = await db.all(count)
    // Records may have come in between: then there is a page after all.
    const isEmpty = Number(total?.['$total']) <= offset || limit === 0 || after !== undefined
    if (total && (isEmpty || attempt === MAX_ATTEMPTS)) return [total]
  }
}

/** One row with `$total`, `$seq` and `$page`; undefined where the database cannot print it. */
export async function listPrinted(
  db: Queryable,
  table: Table,
  select: Select,
  search: Search,
): Promise<Row | undefined> {
  const { printed, count } = listingOf(table, select)
  if (!printed || !select.printed) return undefined
  const { params: shown } = select.printed
  const { after, limit } = search
  const [row] = after
    ? await db.all(printed.behind, [after.id, limit, ...shown, after.id, limit])
    : await ask(db, table, { ...printed, count, shown }, search)
  return row
}

interface Asked extends Texts {
  readonly count: string
  readonly shown: readonly SqlValue[]
}

async function ask(
  db: Queryable,
  { model, dialect }: Table,
  { near, from, far, count, shown }: Asked,
  { limit, offset }: Search,
): Promise<Row[]> {
  // Before the first visible record there may be any number of archived ones.
  if (offset < WALKED && !model.archived) return db.all(near, [...shown, limit, offset])
  if (!db.atOnce) return db.all(far, [...placeSql(model, dialect).params(offset), ...shown, limit, offset])
  return db.atOnce((all) => {
    const place = placeOf(all, model, offset)
    return place ? all(from, [...shown, place.id, limit, place.skip]) : all(count, [])
  })
}

function listingOf(table: Table, select: Select): Listing {
  const listing = LISTINGS.get(select) ?? makeListing(table, select)
  LISTINGS.set(select, listing)
  return listing
}

function makeListing({ name, model, dialect }: Table, select: Select): Listing {
  const known = `${wholeOf(model)} as "$total", ${LAST_SEQ} as "$seq"`
  const place = placeSql(model, dialect)
  const visible = `${visibleSql(model)} order by t."id" ${LIMIT}`
  const behind = `from ${name} as t where t."id" > ? and ${visible}`
  const texts = (shown: (from: string, also?: string) => string, also?: string): Texts => ({
    near: shown(`from ${name} as t order by t."id" ${LIMIT} offset ?`),
    from: shown(`from ${name} as t where t."id" >= ? and ${visible} offset ?`),
    far:
      place.with +
      shown(`from ${name} as t where t."id" >= ${place.id} and ${visible} offset ? - ${place.before}`),
    behind: shown(behind, also),
  })
  const text = select.printed?.text.sql
  const printed = (from: string, also = '') =>
    `select ${known}${also}, "whole"."text" as "$page", "whole"."last" as "$last" ` +
    `from (select ${dialect.joined('"text"', '"id"')} as "text", max("id") as "last" ` +
    `from (select t."id" as "id", ${String(text)} as "text" ${from}) as "page") as "whole"`
  const more = `, (select 1 ${behind.replace(LIMIT, 'limit 1 offset ?')}) as "$more"`
  return {
    rows: texts((from) => `select ${known}, ${select.columns} ${from}`),
    printed: text === undefined ? undefined : texts(printed, more),
    count: `select ${known}`,
  }
}

/** How many a find shows, as a value. */
export function wholeOf({ name }: Model): string {
  return `coalesce((select n from ${COUNT_TABLE} where model = '${name}' and level = ${WHOLE_LEVEL} and block = 0), 0)`
}
