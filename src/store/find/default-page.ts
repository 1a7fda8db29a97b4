// A page by id of all that a find shows, where counters know how many there are and where the page begins: nothing is counted, and hardly
// anything walked over. Each text is made once for what it shows.
import type { Model } from '../../model/definition/model.js'
import type { Search } from '../../model/query/search.js'
import { COUNT_TABLE, visibleSql, WHOLE_LEVEL } from '../counters/counted-fields.js'
import type { Queryable, Row, SqlValue } from '../engine/database.js'
import { LAST_SEQ } from '../log/feed.js'
import { limitTo } from '../sql/parameters.js'
import { placeOf, placeSql, SMALLEST_BLOCK } from './offset-lookup.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

const MAX_ATTEMPTS = 3
const LIMIT = limitTo()
/** A record may be so many times as large as its limited values can be: a smaller share would send too many pages on to be weighed. */
const ROOM = 2

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
  /** The total alone. */
  readonly count: string
}

interface Listing {
  readonly rows: Texts
  /**
   * One row with the texts of all records of the page and the last id, where the database can print them. `behind` also tells whether others
   * follow, for which its parameters stand before all others, too: the id and the limit.
   */
  readonly printed: Texts | undefined
  /** Prints the page, leaves out records larger than a share, and counts those in `$heavy`. Its share follows the parameters of the weight. */
  readonly shared: Texts | undefined
  /** One row with the bytes that the records of the page take. */
  readonly weight: Texts
}

const HEAVY = ', count(*) - count("text") as "$heavy"'
const LISTINGS = new WeakMap<Select, Map<number, Listing>>()

/** Whether a search is for all records of the model that are shown when nothing is asked. */
export function isListing({ model, instead }: Table, { where, seen, sort, archived }: Search): boolean {
  return !where && !seen && sort.length === 0 && !instead && !(archived && model.archived)
}

/** Rows with `$total` and `$seq`; those of a page without records have no more. */
export async function listRows(db: Queryable, table: Table, select: Select, search: Search): Promise<Row[]> {
  const { rows } = listingOf(table, select, search.limit)
  for (let attempt = 1; ; attempt++) {
    const { after, limit, offset } = search
    const page = after
      ? await db.all(rows.behind, [...select.params, after.id, limit + 1])
      : await ask(db, table, { texts: rows, shown: select.params }, search)
    if (page.length > 0) return page
    const [total] = await db.all(rows.count)
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
  const { printed: texts } = listingOf(table, select, search.limit)
  if (!texts || !select.printed) return undefined
  return askPrinted(db, table, { texts, shown: select.printed.params }, search)
}

/** Prints a page of at most so many bytes. Undefined where the page is larger, or the database cannot print it. */
export async function listPrintedWithin(
  db: Queryable,
  table: Table,
  select: Select,
  search: Search,
  mostBytes: number,
): Promise<Row | undefined> {
  const { shared: texts } = listingOf(table, select, search.limit)
  if (!texts || !select.printed) return undefined
  const { rough, limitedBytes } = select.weight
  const share = Math.floor(mostBytes / search.limit)
  if (share >= ROOM * limitedBytes) {
    const shown = [...rough.params, share, ...select.printed.params]
    const row = await askPrinted(db, table, { texts, shown }, search)
    if (Number(row?.['$heavy'] ?? 0) === 0) return row
  }
  const bytes = await weighList(db, table, select, search)
  return bytes > mostBytes ? undefined : listPrinted(db, table, select, search)
}

async function askPrinted(
  db: Queryable,
  table: Table,
  asked: Asked,
  search: Search,
): Promise<Row | undefined> {
  const { after, limit } = search
  const [row] = after
    ? await db.all(asked.texts.behind, [after.id, limit, ...asked.shown, after.id, limit])
    : await ask(db, table, asked, search)
  return row
}

/** How many bytes the values of the page take. */
export async function weighList(
  db: Queryable,
  table: Table,
  select: Select,
  search: Search,
): Promise<number> {
  const { weight: texts } = listingOf(table, select, search.limit)
  const { params: shown } = select.weight.stored
  const { after, limit } = search
  const [row] = after
    ? await db.all(texts.behind, [...shown, after.id, limit])
    : await ask(db, table, { texts, shown }, search)
  return Number(row?.['$bytes'] ?? 0)
}

interface Asked {
  readonly texts: Texts
  readonly shown: readonly SqlValue[]
}

async function ask(
  db: Queryable,
  { model, dialect }: Table,
  { texts, shown }: Asked,
  { limit, offset }: Search,
): Promise<Row[]> {
  // Before the first visible record there may be any number of archived ones.
  if (offset < WALKED && !model.archived) return askOnce(db, texts.near, [...shown, limit, offset])
  if (!db.atOnce)
    return askOnce(db, texts.far, [...placeSql(model, dialect).params(offset), ...shown, limit, offset])
  return db.atOnce((all) => {
    const place = placeOf(all, model, offset)
    return place ? all(texts.from, [...shown, place.id, limit, place.skip]) : all(texts.count, [])
  })
}

/** A page that several ask for at the same time is looked up once, after the last of them has asked. */
async function askOnce(db: Queryable, sql: string, params: readonly SqlValue[]): Promise<Row[]> {
  if (!db.together) return db.all(sql, params)
  return db.together(`${sql} ${JSON.stringify(params)}`, undefined, async (askers) => {
    const rows = await db.all(sql, params)
    return askers.map(() => rows)
  })
}

function listingOf(table: Table, select: Select, limit: number): Listing {
  const most = table.dialect.plansByBounds ? boundOf(limit) : Infinity
  const known = LISTINGS.get(select) ?? new Map<number, Listing>()
  LISTINGS.set(select, known)
  const listing = known.get(most) ?? makeListing(table, select, most)
  known.set(most, listing)
  return listing
}

/** Few sizes, so that there are few texts. */
function boundOf(limit: number): number {
  return 50 * 10 ** Math.max(0, Math.ceil(Math.log10(limit / 50)))
}

function makeListing({ name, model, dialect }: Table, select: Select, most: number): Listing {
  const known = `${wholeOf(model)} as "$total", ${LAST_SEQ} as "$seq"`
  const place = placeSql(model, dialect)
  const page = `order by t."id" ${LIMIT}`
  const from = (where: string, besides: number) =>
    most === Infinity
      ? `from ${name} as t${where}`
      : `from (select * from ${name} as t${where} order by t."id" limit ${most + besides}) as t`
  const visible = visibleSql(model)
  const behind = `${from(` where t."id" > ? and ${visible}`, 1)} ${page}`
  const texts = (shown: (from: string, also?: string) => string, also?: string): Texts => ({
    near: shown(`${from('', WALKED)} ${page} offset ?`),
    from: shown(`${from(` where t."id" >= ? and ${visible}`, SMALLEST_BLOCK)} ${page} offset ?`),
    far:
      place.with +
      shown(
        `${from(` where t."id" >= ${place.id} and ${visible}`, SMALLEST_BLOCK)} ${page} offset ? - ${place.before}`,
      ),
    behind: shown(behind, also),
    count: `select ${known}`,
  })
  const text = select.printed?.text.sql
  const print =
    (text: string, facts: string) =>
    (from: string, also = '') =>
      `select ${known}${also}, "whole".* from (` +
      `select ${dialect.joined('"text"', '"id"')} as "$page", max("id") as "$last"${facts} ` +
      `from (select t."id" as "id", ${text} as "text" ${from}) as "page") as "whole"`
  const more = `, (select 1 ${behind.replace(LIMIT, 'limit 1 offset ?')}) as "$more"`
  const weigh = (from: string) =>
    `select sum("bytes") as "$bytes" from (select ${select.weight.stored.sql} as "bytes" ${from}) as "page"`
  const light = () => print(`case when ${select.weight.rough.sql} <= ? then ${String(text)} end`, HEAVY)
  let weight: Texts | undefined
  let shared: Texts | undefined
  return {
    rows: texts((from) => `select ${known}, ${select.columns} ${from}`),
    printed: text === undefined ? undefined : texts(print(text, ''), more),
    get shared() {
      return text === undefined ? undefined : (shared ??= texts(light(), more))
    },
    get weight() {
      return (weight ??= texts(weigh))
    },
  }
}

/** How many a find shows, as a value. */
export function wholeOf({ name }: Model): string {
  return `coalesce((select n from ${COUNT_TABLE} where model = '${name}' and level = ${WHOLE_LEVEL} and block = 0), 0)`
}
