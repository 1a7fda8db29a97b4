// The row of one record. Where those of several are wanted at the same time, they are read together.
import type { Criteria } from '../../model/query/criteria.js'
import { compilePredicate } from './criteria.js'
import type { Dialect, Queryable, Row, SqlValue } from '../engine/database.js'
import type { SqlFragment } from './parameters.js'

/** A statement that reads records by their ids, and their ids with them. Its texts are made once. */
export interface PointRead {
  /** As far as the id that is compared. */
  readonly upToId: string
  /** The whole of it, for one id. */
  readonly byId: string
  /** Of what stands before the id. */
  readonly params: readonly SqlValue[]
}

export function compilePointRead(columns: string, table: string, params: readonly SqlValue[]): PointRead {
  const upToId = `select ${columns} from ${table} as t where t."id"`
  return { upToId, byId: `${upToId} = ?`, params }
}

/** Which records a read answers. A record that it leaves out is as if it were not there. */
export interface ReadFilter {
  /** Those that may be seen. */
  readonly seen?: Criteria | undefined
  /** Those whose values take no more than so many bytes. */
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

/** What is the same for every id, and may ask more of each. */
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
