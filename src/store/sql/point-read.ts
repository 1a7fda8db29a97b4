// Reads the row of one record by its id. Concurrent reads with the same statement are batched.
import type { Criteria } from '../../model/query/criteria.js'
import { compilePredicate } from './criteria.js'
import type { Dialect, Queryable, Row, SqlValue } from '../engine/database.js'
import type { SqlFragment } from './parameters.js'

/** A statement that reads records by id. Its rows contain the id. */
export interface PointRead {
  /** The text up to the comparison with the id. */
  readonly upToId: string
  /** The whole statement for one id. */
  readonly byId: string
  /** The parameters before the id. */
  readonly params: readonly SqlValue[]
}

export function compilePointRead(columns: string, table: string, params: readonly SqlValue[]): PointRead {
  const upToId = `select ${columns} from ${table} as t where t."id"`
  return { upToId, byId: `${upToId} = ?`, params }
}

/** Excluded records are treated as if they did not exist. */
export interface ReadFilter {
  /** The records that the user may read. */
  readonly seen?: Criteria | undefined
  /** The records up to this size. */
  readonly within?: { readonly weight: SqlFragment; readonly bytes: number }
}

export async function readRow(
  db: Queryable,
  dialect: Dialect,
  id: number,
  read: PointRead,
  { seen, within }: ReadFilter = {},
): Promise<Row | undefined> {
  const visibleRead = seen ? addCondition(read, compilePredicate(dialect, seen)) : read
  const reading = within ? addCondition(visibleRead, compileByteLimit(within)) : visibleRead
  if (!db.batch) return readOneRow(db, reading, id)
  return db.batch(toBatchKey(reading), id, (ids) => readRows(db, dialect, reading, ids))
}

/** A read with further conditions after the id. */
interface FilteredRead extends PointRead {
  readonly and?: string
  readonly after?: readonly SqlValue[]
}

function addCondition(
  { upToId, byId, params, and = '', after = [] }: FilteredRead,
  { sql, params: more }: SqlFragment,
): FilteredRead {
  const also = ` and ${sql}`
  return { upToId, byId: byId + also, params, and: and + also, after: [...after, ...more] }
}

function compileByteLimit({ weight, bytes }: Required<ReadFilter>['within']): SqlFragment {
  return { sql: `${weight.sql} <= ?`, params: [...weight.params, bytes] }
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

async function readRows(
  db: Queryable,
  dialect: Dialect,
  reading: FilteredRead,
  ids: readonly number[],
): Promise<(Row | undefined)[]> {
  const [first] = ids
  if (first !== undefined && ids.length === 1) return [await readOneRow(db, reading, first)]
  const { upToId, and = '', params, after = [] } = reading
  const sql = `${upToId} in (${dialect.json.unnest('integer')})${and}`
  const rows = await db.all(sql, [...params, JSON.stringify(ids), ...after])
  const byId = new Map(rows.map((row) => [row['id'], row]))
  return ids.map((id) => byId.get(id))
}
