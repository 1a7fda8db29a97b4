// The default page: all records of a model that are not archived, in the order of their ids. Counters supply the total and the first id of
// the page, so that the statement counts nothing and scans few rows. Statements are compiled once for each Select.
import type { Model } from '../../model/definition/model.js'
import type { Search } from '../../model/query/search.js'
import { COUNT_TABLE, buildNotArchivedSql, TOTAL_LEVEL } from '../counters/counted-fields.js'
import type { Queryable, Row, SqlValue } from '../engine/database.js'
import { LAST_SEQ_SQL } from '../log/feed.js'
import { compileLimit } from '../sql/parameters.js'
import { findPageStart, compileOffsetLookup, SMALLEST_BLOCK_IDS } from './offset-lookup.js'
import type { DefaultPageSql, PageStatements } from '../sql/point-read.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

/** How often a page that was empty is read again because records were created meanwhile. */
export const MAX_PAGE_ATTEMPTS = 3
const LIMIT = compileLimit()
/** Measures the whole page first if the share of a record is below this multiple of its limited bytes: too many records would exceed it. */
const MIN_SHARE_FACTOR = 2

/** Scanning this many rows is faster than an offset lookup. */
export const MAX_SCANNED_ROWS = 256

const OVERSIZE_COUNT = ', count(*) - count("text") as "$heavy"'

/** True if the search finds all records of the model that are not archived, in the default order. */
export function isDefaultPage(
  { model, historicalRows }: Table,
  { where, visible, sort, archived }: Search,
): boolean {
  return !where && !visible && sort.length === 0 && !historicalRows && !(archived && model.archived)
}

/** Rows with `$total` and `$seq`. For an empty page, one row with nothing else. */
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
    // Records may have been created between the two statements, so the page may exist now.
    const isEmpty = Number(total?.['$total']) <= offset || limit === 0 || after !== undefined
    if (total && (isEmpty || attempt === MAX_PAGE_ATTEMPTS)) return [total]
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
  search: Search,
  { select, maxBytes }: { readonly select: Select; readonly maxBytes: number },
): Promise<Row | undefined> {
  const { jsonWithinShare: statements } = getDefaultPageSql(table, select, search.limit)
  if (!statements || !select.json) return undefined
  const { estimatedBytes, limitedBytes } = select.sizeSql
  const share = Math.floor(maxBytes / search.limit)
  if (share >= MIN_SHARE_FACTOR * limitedBytes) {
    const selectParams = [...estimatedBytes.params, share, ...select.json.params]
    const row = await askPrinted(db, table, { statements, selectParams }, search)
    if (Number(row?.['$heavy'] ?? 0) === 0) return row
  }
  const bytes = await measureDefaultPage(db, table, select, search)
  return bytes > maxBytes ? undefined : listPrinted(db, table, select, search)
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

/** The stored size of the records of the page. */
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
  // Archived records may precede the page in any number, so models with archived records always use the lookup.
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

/** Runs the same query of concurrent requests once. */
async function queryBatched(db: Queryable, sql: string, params: readonly SqlValue[]): Promise<Row[]> {
  if (!db.batch) return db.all(sql, params)
  return db.batch(`${sql} ${JSON.stringify(params)}`, undefined, async (inputs) => {
    const rows = await db.all(sql, params)
    return inputs.map(() => rows)
  })
}

function getDefaultPageSql(table: Table, select: Select, limit: number): DefaultPageSql {
  const bound = table.dialect.needsLiteralLimit ? roundUpLimit(limit) : Infinity
  const cached = select.defaultPages.get(bound)
  if (cached) return cached
  const compiled = compileDefaultPage(table, select, bound)
  select.defaultPages.set(bound, compiled)
  return compiled
}

/** Few different limits, so that few statements are prepared. */
function roundUpLimit(limit: number): number {
  return 50 * 10 ** Math.max(0, Math.ceil(Math.log10(limit / 50)))
}

function compileDefaultPage({ name, model, dialect }: Table, select: Select, bound: number): DefaultPageSql {
  const totals = `${compileTotal(model)} as "$total", ${LAST_SEQ_SQL} as "$seq"`
  const offsetLookup = compileOffsetLookup(model, dialect)
  const page = `order by t."id" ${LIMIT}`
  const from = (where: string, extraRows: number) =>
    bound === Infinity
      ? `from ${name} as t${where}`
      : `from (select * from ${name} as t${where} order by t."id" limit ${bound + extraRows}) as t`
  const unarchived = buildNotArchivedSql(model)
  const afterId = `${from(` where t."id" > ? and ${unarchived}`, 1)} ${page}`
  const compile = (
    compileSelect: (from: string, extraColumn?: string) => string,
    afterIdColumn?: string,
  ): PageStatements => ({
    byOffset: compileSelect(`${from('', MAX_SCANNED_ROWS)} ${page} offset ?`),
    fromId: compileSelect(
      `${from(` where t."id" >= ? and ${unarchived}`, SMALLEST_BLOCK_IDS)} ${page} offset ?`,
    ),
    byOffsetLookup:
      offsetLookup.with +
      compileSelect(
        `${from(` where t."id" >= ${offsetLookup.id} and ${unarchived}`, SMALLEST_BLOCK_IDS)} ${page} offset ? - ${offsetLookup.before}`,
      ),
    afterId: compileSelect(afterId, afterIdColumn),
    count: `select ${totals}`,
  })
  const text = select.json?.text.sql
  const selectJson =
    (text: string, aggregates: string) =>
    (from: string, extraColumn = '') =>
      `select ${totals}${extraColumn}, "whole".* from (` +
      `select ${dialect.joinJson('"text"', '"id"')} as "$page", max("id") as "$last"${aggregates} ` +
      `from (select t."id" as "id", ${text} as "text" ${from}) as "page") as "whole"`
  const more = `, (select 1 ${afterId.replace(LIMIT, 'limit 1 offset ?')}) as "$more"`
  const selectSize = (from: string) =>
    `select sum("bytes") as "$bytes" from (select ${select.sizeSql.storedBytes.sql} as "bytes" ${from}) as "page"`
  const selectJsonWithinShare = () =>
    selectJson(`case when ${select.sizeSql.estimatedBytes.sql} <= ? then ${String(text)} end`, OVERSIZE_COUNT)
  let size: PageStatements | undefined
  let jsonWithinShare: PageStatements | undefined
  return {
    rows: compile((from) => `select ${totals}, ${select.columns} ${from}`),
    json: text === undefined ? undefined : compile(selectJson(text, ''), more),
    get jsonWithinShare() {
      return text === undefined ? undefined : (jsonWithinShare ??= compile(selectJsonWithinShare(), more))
    },
    get size() {
      return (size ??= compile(selectSize))
    },
  }
}

/** The number of records of the model that are not archived, as an expression. */
export function compileTotal({ name }: Model): string {
  return `coalesce((select n from ${COUNT_TABLE} where model = '${name}' and level = ${TOTAL_LEVEL} and block = 0), 0)`
}
