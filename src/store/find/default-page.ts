// The default page: all records of a model that are not archived, in the order of their ids. Counters supply the total and the first id of
// the page, so that the statement counts nothing and scans few rows.
import type { Search } from '../../model/query/search.js'
import type { Queryable, Row, SqlValue } from '../engine/database.js'
import { getDefaultPageSql, MAX_SCANNED_ROWS } from './default-page-sql.js'
import { createEmptyPage, decodePage, readJsonPage, readTotals } from './page-rows.js'
import { findPageStart, compileOffsetLookup } from './offset-lookup.js'
import type { PageStatements } from '../sql/point-read.js'
import type { FoundPage } from '../sql/found.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

/** How often a page that was empty is read again because records were created meanwhile. */
export const MAX_PAGE_ATTEMPTS = 3
/** Measures the whole page first if the share of a record is below this multiple of its limited bytes: too many records would exceed it. */
const MIN_SHARE_FACTOR = 2

/** Reads a default page. Undefined if it is larger than `maxBytes`. */
export async function findDefaultPage(
  db: Queryable,
  table: Table,
  search: Search,
  { select, maxBytes }: DefaultPageOptions,
): Promise<FoundPage | undefined> {
  const mustMeasure = mayExceed(select, search, maxBytes)
  if (select.json && mustMeasure) return findJsonWithinShare(db, table, search, { select, maxBytes })
  if (mustMeasure && (await measureDefaultPage(db, table, select, search)) > maxBytes) return undefined
  return select.json ? findJson(db, table, search, select) : findRows(db, table, search, select)
}

interface DefaultPageOptions {
  readonly select: Select
  readonly maxBytes: number
}

/** True if the largest possible page exceeds the bytes. */
export function mayExceed({ maxBytes }: Select, { limit }: Search, bytes: number): boolean {
  return bytes !== Infinity && limit > 0 && maxBytes * limit > bytes
}

/** For records whose JSON text the database cannot build. */
async function findRows(db: Queryable, table: Table, search: Search, select: Select): Promise<FoundPage> {
  const { rows: statements } = getDefaultPageSql(table, select, search.limit)
  for (let attempt = 1; ; attempt++) {
    const { after, limit, offset } = search
    const rows = after
      ? await db.allShared(statements.afterId, [...select.params, after.id, limit + 1])
      : await queryDefaultPage(db, table, { statements, selectParams: select.params }, search)
    if (rows[0]?.['id'] !== undefined) return decodePage(rows, table, select, search)
    const totals = readTotals(rows.length > 0 ? rows : await db.all(statements.count))
    // Records may have been created between the two statements, so the page may exist now.
    const isEmpty = rows.length > 0 || (totals.total ?? 0) <= offset || limit === 0 || after !== undefined
    if (isEmpty || attempt === MAX_PAGE_ATTEMPTS) return createEmptyPage(totals)
  }
}

/** The database builds the JSON text of the page. */
async function findJson(
  db: Queryable,
  table: Table,
  search: Search,
  select: Select,
): Promise<FoundPage | undefined> {
  const { json: statements } = getDefaultPageSql(table, select, search.limit)
  if (!statements || !select.json) return undefined
  const row = await queryJson(db, table, { statements, selectParams: select.json.params }, search)
  return row && readJsonPage(row, search)
}

/** Measures the page and builds its JSON text in one statement, if each record is within its share of the bytes. */
async function findJsonWithinShare(
  db: Queryable,
  table: Table,
  search: Search,
  { select, maxBytes }: DefaultPageOptions,
): Promise<FoundPage | undefined> {
  const { jsonWithinShare: statements } = getDefaultPageSql(table, select, search.limit)
  if (!statements || !select.json) return undefined
  const { estimatedBytes, limitedBytes } = select.sizeSql
  const share = Math.floor(maxBytes / search.limit)
  if (share >= MIN_SHARE_FACTOR * limitedBytes) {
    const selectParams = [...estimatedBytes.params, share, ...select.json.params]
    const row = await queryJson(db, table, { statements, selectParams }, search)
    if (row && Number(row['$heavy'] ?? 0) === 0) return readJsonPage(row, search)
  }
  const bytes = await measureDefaultPage(db, table, select, search)
  return bytes > maxBytes ? undefined : findJson(db, table, search, select)
}

/** One row with `$total`, `$seq` and `$page`. */
async function queryJson(
  db: Queryable,
  table: Table,
  query: DefaultPageQuery,
  search: Search,
): Promise<Row | undefined> {
  const { after, limit } = search
  const [row] = after
    ? await db.allShared(query.statements.afterId, [after.id, limit, ...query.selectParams, after.id, limit])
    : await queryDefaultPage(db, table, query, search)
  return row
}

/** The stored size of the records of the page. */
async function measureDefaultPage(
  db: Queryable,
  table: Table,
  select: Select,
  search: Search,
): Promise<number> {
  const { size: statements } = getDefaultPageSql(table, select, search.limit)
  const { params: selectParams } = select.sizeSql.storedBytes
  const { after, limit } = search
  const [row] = after
    ? await db.allShared(statements.afterId, [...selectParams, after.id, limit])
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
): Promise<readonly Row[]> {
  // Archived records may precede the page in any number, so models with archived records always use the lookup.
  if (offset < MAX_SCANNED_ROWS && !model.archived)
    return db.allShared(statements.byOffset, [...selectParams, limit, offset])
  return db.readInSnapshot(
    (all) => {
      const start = findPageStart(all, model, offset)
      return start
        ? all(statements.fromId, [...selectParams, start.id, limit, start.skip])
        : all(statements.count, [])
    },
    () => {
      const { params } = compileOffsetLookup(model, dialect)
      return db.allShared(statements.byOffsetLookup, [...params(offset), ...selectParams, limit, offset])
    },
  )
}
