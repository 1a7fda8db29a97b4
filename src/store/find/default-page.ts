// A page by id of all that a find shows, where counters know how many there are and where the page begins: nothing is counted, and hardly
// anything walked over. Each text is made once for what it shows.
import type { Model } from '../../model/definition/model.js'
import type { Search } from '../../model/query/search.js'
import { COUNT_TABLE, buildNotArchivedSql, TOTAL_LEVEL } from '../counters/counted-fields.js'
import type { Queryable, Row, SqlValue } from '../engine/database.js'
import { LAST_SEQ_SQL } from '../log/feed.js'
import { compileLimit } from '../sql/parameters.js'
import { findPageStart, compileOffsetLookup, SMALLEST_BLOCK_IDS } from './offset-lookup.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

const MAX_DEFAULT_PAGE_ATTEMPTS = 3
const LIMIT = compileLimit()
/** A record may be so many times as large as its limited values can be: a smaller share would send too many pages on to be weighed. */
const MIN_SHARE_FACTOR = 2

/** Walking over so many rows is quicker than looking for the block. */
export const MAX_SCANNED_ROWS = 256

interface PageStatements {
  /** Its parameters, behind those of what is shown: limit, offset. */
  readonly byOffset: string
  /** From an id on: the id, limit, and how many are left out from there. */
  readonly fromId: string
  /** The place of the offset is found in the same statement: the offsets of its levels, what is shown, limit, offset. */
  readonly byOffsetLookup: string
  /** Behind an id. Of rows: that id and one more than the limit, which tells whether others follow. */
  readonly afterId: string
  /** The total alone. */
  readonly count: string
}

interface DefaultPageSql {
  readonly rows: PageStatements
  /**
   * One row with the texts of all records of the page and the last id, where the database can print them. `behind` also tells whether others
   * follow, for which its parameters stand before all others, too: the id and the limit.
   */
  readonly json: PageStatements | undefined
  /** Prints the page, leaves out records larger than a share, and counts those in `$heavy`. Its share follows the parameters of the weight. */
  readonly jsonWithinShare: PageStatements | undefined
  /** One row with the bytes that the records of the page take. */
  readonly size: PageStatements
}

const OVERSIZE_COUNT = ', count(*) - count("text") as "$heavy"'
const DEFAULT_PAGE_CACHE = new WeakMap<Select, Map<number, DefaultPageSql>>()

/** Whether a search is for all records of the model that are shown when nothing is asked. */
export function isDefaultPage(
  { model, historicalRows }: Table,
  { where, seen, sort, archived }: Search,
): boolean {
  return !where && !seen && sort.length === 0 && !historicalRows && !(archived && model.archived)
}

/** Rows with `$total` and `$seq`; those of a page without records have no more. */
export async function readDefaultPageRows(
  db: Queryable,
  table: Table,
  select: Select,
  search: Search,
): Promise<Row[]> {
  const { rows } = getDefaultPageSql(table, select, search.limit)
  for (let attempt = 1; ; attempt++) {
    const { after, limit, offset } = search
    const page = after
      ? await db.all(rows.afterId, [...select.params, after.id, limit + 1])
      : await queryDefaultPage(db, table, { statements: rows, selectParams: select.params }, search)
    if (page.length > 0) return page
    const [total] = await db.all(rows.count)
    // Records may have come in between: then there is a page after all.
    const isEmpty = Number(total?.['$total']) <= offset || limit === 0 || after !== undefined
    if (total && (isEmpty || attempt === MAX_DEFAULT_PAGE_ATTEMPTS)) return [total]
  }
}

/** One row with `$total`, `$seq` and `$page`; undefined where the database cannot print it. */
export async function listPrinted(
  db: Queryable,
  table: Table,
  select: Select,
  search: Search,
): Promise<Row | undefined> {
  const { json: statements } = getDefaultPageSql(table, select, search.limit)
  if (!statements || !select.json) return undefined
  return askPrinted(db, table, { statements, selectParams: select.json.params }, search)
}

/** Prints a page of at most so many bytes. Undefined where the page is larger, or the database cannot print it. */
export async function listPrintedWithin(
  db: Queryable,
  table: Table,
  select: Select,
  search: Search,
  mostBytes: number,
): Promise<Row | undefined> {
  const { jsonWithinShare: statements } = getDefaultPageSql(table, select, search.limit)
  if (!statements || !select.json) return undefined
  const { estimatedBytes, limitedBytes } = select.sizeSql
  const share = Math.floor(mostBytes / search.limit)
  if (share >= MIN_SHARE_FACTOR * limitedBytes) {
    const selectParams = [...estimatedBytes.params, share, ...select.json.params]
    const row = await askPrinted(db, table, { statements, selectParams }, search)
    if (Number(row?.['$heavy'] ?? 0) === 0) return row
  }
  const bytes = await measureDefaultPage(db, table, select, search)
  return bytes > mostBytes ? undefined : listPrinted(db, table, select, search)
}

async function askPrinted(
  db: Queryable,
  table: Table,
  asked: DefaultPageQuery,
  search: Search,
): Promise<Row | undefined> {
  const { after, limit } = search
  const [row] = after
    ? await db.all(asked.statements.afterId, [after.id, limit, ...asked.selectParams, after.id, limit])
    : await queryDefaultPage(db, table, asked, search)
  return row
}

/** How many bytes the values of the page take. */
export async function measureDefaultPage(
  db: Queryable,
  table: Table,
  select: Select,
  search: Search,
): Promise<number> {
  const { size: statements } = getDefaultPageSql(table, select, search.limit)
  const { params: selectParams } = select.sizeSql.storedBytes
  const { after, limit } = search
  const [row] = after
    ? await db.all(statements.afterId, [...selectParams, after.id, limit])
    : await queryDefaultPage(db, table, { statements, selectParams }, search)
  return Number(row?.['$bytes'] ?? 0)
}

interface DefaultPageQuery {
  readonly statements: PageStatements
  readonly selectParams: readonly SqlValue[]
}

async function queryDefaultPage(
  db: Queryable,
  { model, dialect }: Table,
  { statements, selectParams }: DefaultPageQuery,
  { limit, offset }: Search,
): Promise<Row[]> {
  // Before the first visible record there may be any number of archived ones.
  if (offset < MAX_SCANNED_ROWS && !model.archived)
    return queryBatched(db, statements.byOffset, [...selectParams, limit, offset])
  if (!db.readInSnapshot)
    return queryBatched(db, statements.byOffsetLookup, [
      ...compileOffsetLookup(model, dialect).params(offset),
      ...selectParams,
      limit,
      offset,
    ])
  return db.readInSnapshot((all) => {
    const start = findPageStart(all, model, offset)
    return start
      ? all(statements.fromId, [...selectParams, start.id, limit, start.skip])
      : all(statements.count, [])
  })
}

/** A page that several ask for at the same time is looked up once, after the last of them has asked. */
async function queryBatched(db: Queryable, sql: string, params: readonly SqlValue[]): Promise<Row[]> {
  if (!db.batch) return db.all(sql, params)
  return db.batch(`${sql} ${JSON.stringify(params)}`, undefined, async (askers) => {
    const rows = await db.all(sql, params)
    return askers.map(() => rows)
  })
}

function getDefaultPageSql(table: Table, select: Select, limit: number): DefaultPageSql {
  const bound = table.dialect.needsLiteralLimit ? roundUpLimit(limit) : Infinity
  const known = DEFAULT_PAGE_CACHE.get(select) ?? new Map<number, DefaultPageSql>()
  DEFAULT_PAGE_CACHE.set(select, known)
  const listing = known.get(bound) ?? compileDefaultPage(table, select, bound)
  known.set(bound, listing)
  return listing
}

/** Few sizes, so that there are few texts. */
function roundUpLimit(limit: number): number {
  return 50 * 10 ** Math.max(0, Math.ceil(Math.log10(limit / 50)))
}

function compileDefaultPage({ name, model, dialect }: Table, select: Select, bound: number): DefaultPageSql {
  const totals = `${compileTotal(model)} as "$total", ${LAST_SEQ_SQL} as "$seq"`
  const offsetLookup = compileOffsetLookup(model, dialect)
  const page = `order by t."id" ${LIMIT}`
  const from = (where: string, besides: number) =>
    bound === Infinity
      ? `from ${name} as t${where}`
      : `from (select * from ${name} as t${where} order by t."id" limit ${bound + besides}) as t`
  const visible = buildNotArchivedSql(model)
  const behind = `${from(` where t."id" > ? and ${visible}`, 1)} ${page}`
  const texts = (shown: (from: string, also?: string) => string, also?: string): PageStatements => ({
    byOffset: shown(`${from('', MAX_SCANNED_ROWS)} ${page} offset ?`),
    fromId: shown(`${from(` where t."id" >= ? and ${visible}`, SMALLEST_BLOCK_IDS)} ${page} offset ?`),
    byOffsetLookup:
      offsetLookup.with +
      shown(
        `${from(` where t."id" >= ${offsetLookup.id} and ${visible}`, SMALLEST_BLOCK_IDS)} ${page} offset ? - ${offsetLookup.before}`,
      ),
    afterId: shown(behind, also),
    count: `select ${totals}`,
  })
  const text = select.json?.text.sql
  const print =
    (text: string, facts: string) =>
    (from: string, also = '') =>
      `select ${totals}${also}, "whole".* from (` +
      `select ${dialect.joinJson('"text"', '"id"')} as "$page", max("id") as "$last"${facts} ` +
      `from (select t."id" as "id", ${text} as "text" ${from}) as "page") as "whole"`
  const more = `, (select 1 ${behind.replace(LIMIT, 'limit 1 offset ?')}) as "$more"`
  const weigh = (from: string) =>
    `select sum("bytes") as "$bytes" from (select ${select.sizeSql.storedBytes.sql} as "bytes" ${from}) as "page"`
  const light = () =>
    print(`case when ${select.sizeSql.estimatedBytes.sql} <= ? then ${String(text)} end`, OVERSIZE_COUNT)
  let weight: PageStatements | undefined
  let shared: PageStatements | undefined
  return {
    rows: texts((from) => `select ${totals}, ${select.columns} ${from}`),
    json: text === undefined ? undefined : texts(print(text, ''), more),
    get jsonWithinShare() {
      return text === undefined ? undefined : (shared ??= texts(light(), more))
    },
    get size() {
      return (weight ??= texts(weigh))
    },
  }
}

/** How many a find shows, as a value. */
export function compileTotal({ name }: Model): string {
  return `coalesce((select n from ${COUNT_TABLE} where model = '${name}' and level = ${TOTAL_LEVEL} and block = 0), 0)`
}
