// The statements that a Select keeps. Reads the row of one record by its id; concurrent reads with the same statement are batched.
import type { Criteria } from '../../model/query/criteria.js'
import { compilePredicate } from './criteria.js'
import type { Dialect, Queryable, Row, SqlValue } from '../engine/database.js'
import type { SqlFragment } from './parameters.js'

/** A statement that reads records by id. Its rows contain the id. */
export interface PointRead {
  readonly dialect: Dialect
  /** The text up to the comparison with the id. */
  readonly upToId: string
  /** The whole statement for one id. */
  readonly byId: string
  /** The parameters before the id. */
  readonly params: readonly SqlValue[]
}

/** `columns` are those of the table `t`. */
export function compilePointRead(dialect: Dialect, table: string, columns: SqlFragment): PointRead {
  const upToId = `select ${columns.sql} from ${table} as t where t."id"`
  return { dialect, upToId, byId: `${upToId} = ?`, params: columns.params }
}

/** Permits records or pages up to a size. */
export interface ByteLimit {
  /** The size of a record `t`. */
  readonly size: SqlFragment
  readonly maxBytes: number
}

/** Excluded records are treated as if they did not exist. */
export interface ReadFilter {
  /** The records that the user may read. */
  readonly visible?: Criteria | undefined
  /** The records up to this size. */
  readonly within?: ByteLimit
}

export async function readRow(
  db: Queryable,
  id: number,
  read: PointRead,
  { visible, within }: ReadFilter = {},
): Promise<Row | undefined> {
  const filtered = filterRead(read, visible, within)
  if (!db.batch) return readOneRow(db, filtered, id)
  return db.batch(toBatchKey(filtered), id, (ids) => readFilteredRows(db, filtered, ids))
}

/** Reads rows in the order of the ids; undefined for a row that does not exist or that the filter excludes. */
export async function readRows(
  db: Queryable,
  ids: readonly number[],
  read: PointRead,
  { visible, within }: ReadFilter = {},
): Promise<(Row | undefined)[]> {
  return readFilteredRows(db, filterRead(read, visible, within), ids)
}

function filterRead(
  read: PointRead,
  visible: Criteria | undefined,
  within: ByteLimit | undefined,
): FilteredRead {
  const visibleRead = visible ? addCondition(read, compilePredicate(read.dialect, visible)) : read
  return within ? addCondition(visibleRead, compileByteLimit(within)) : visibleRead
}

/** A read with further conditions after the id. */
interface FilteredRead extends PointRead {
  readonly and?: string
  readonly after?: readonly SqlValue[]
}

function addCondition(
  { dialect, upToId, byId, params, and = '', after = [] }: FilteredRead,
  condition: SqlFragment,
): FilteredRead {
  const andCondition = ` and ${condition.sql}`
  return {
    dialect,
    upToId,
    byId: byId + andCondition,
    params,
    and: and + andCondition,
    after: [...after, ...condition.params],
  }
}

function compileByteLimit({ size, maxBytes }: ByteLimit): SqlFragment {
  return { sql: `${size.sql} <= ?`, params: [...size.params, maxBytes] }
}

function toBatchKey({ byId, params, after = [] }: FilteredRead): string {
  return params.length + after.length === 0 ? byId : JSON.stringify([byId, params, after])
}

async function readOneRow(
  db: Queryable,
  { byId, params, after }: FilteredRead,
  id: number,
): Promise<Row | undefined> {
  const [row] = await db.all(byId, after ? [...params, id, ...after] : [...params, id])
  return row
}

async function readFilteredRows(
  db: Queryable,
  read: FilteredRead,
  ids: readonly number[],
): Promise<(Row | undefined)[]> {
  const [first] = ids
  if (first !== undefined && ids.length === 1) return [await readOneRow(db, read, first)]
  const { dialect, upToId, and = '', params, after = [] } = read
  const sql = `${upToId} in (${dialect.json.unnest('integer')})${and}`
  const rows = await db.all(sql, [...params, JSON.stringify(ids), ...after])
  const byId = new Map(rows.map((row) => [row['id'], row]))
  return ids.map((id) => byId.get(id))
}

/** The ways to read a default page. See find/default-page.ts. */
export interface PageStatements {
  /** Parameters: those of the select, limit, offset. */
  readonly byOffset: string
  /** Starts at an id. Parameters: those of the select, id, limit, number of rows to skip from there. */
  readonly fromId: string
  /** Includes the offset lookup. Parameters: the offset for each level, those of the select, limit, offset. */
  readonly byOffsetLookup: string
  /** Starts after an id. Parameters: those of the select, id, limit. For rows the limit is one more than the page, to see if others follow. */
  readonly afterId: string
  /** Only the total and the sequence number; no parameters. */
  readonly count: string
}

/** All statements of the default page for one Select. */
export interface DefaultPageSql {
  readonly rows: PageStatements
  /**
   * One row with the JSON text of the page and its last id; undefined if the database cannot print the records. `afterId` also selects `$more`
   * if others follow, so its parameters start with the id and the limit.
   */
  readonly json: PageStatements | undefined
  /** Like `json` without records larger than a share, which `$heavy` counts. The share follows the parameters of the size. */
  readonly jsonWithinShare: PageStatements | undefined
  /** One row with the size of the page in bytes. */
  readonly size: PageStatements
}
