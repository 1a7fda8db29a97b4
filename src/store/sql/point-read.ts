// The row of one record. Where those of several are wanted at the same time, they are read together.
import type { Criteria } from '../../model/query/criteria.js'
import { predicateOf } from './criteria.js'
import type { Dialect, Queryable, Row, SqlValue } from '../engine/database.js'
import type { Rendered } from './parameters.js'

/** A statement that reads records by their ids, and their ids with them. Its texts are made once. */
export interface PointRead {
  /** As far as the id that is compared. */
  readonly upToId: string
  /** The whole of it, for one id. */
  readonly byId: string
  /** Of what stands before the id. */
  readonly params: readonly SqlValue[]
}

export function pointRead(columns: string, table: string, params: readonly SqlValue[]): PointRead {
  const upToId = `select ${columns} from ${table} as t where t."id"`
  return { upToId, byId: `${upToId} = ?`, params }
}

/** Which records a read answers. A record that it leaves out is as if it were not there. */
export interface Only {
  /** Those that may be seen. */
  readonly seen?: Criteria | undefined
  /** Those whose values take no more than so many bytes. */
  readonly within?: { readonly weight: Rendered; readonly bytes: number }
}

export async function rowOf(
  db: Queryable,
  dialect: Dialect,
  id: number,
  read: PointRead,
  { seen, within }: Only = {},
): Promise<Row | undefined> {
  const permitted = seen ? restricted(read, predicateOf(dialect, seen)) : read
  const reading = within ? restricted(permitted, lighterThan(within)) : permitted
  if (!db.together) return readOne(db, reading, id)
  return db.together(keyOf(reading), id, (ids) => readSeveral(db, dialect, reading, ids))
}

/** What is the same for every id, and may ask more of each. */
interface Reading extends PointRead {
  readonly and?: string
  readonly after?: readonly SqlValue[]
}

function restricted(
  { upToId, byId, params, and = '', after = [] }: Reading,
  { sql, params: more }: Rendered,
): Reading {
  const also = ` and ${sql}`
  return { upToId, byId: byId + also, params, and: and + also, after: [...after, ...more] }
}

function lighterThan({ weight, bytes }: Required<Only>['within']): Rendered {
  return { sql: `${weight.sql} <= ?`, params: [...weight.params, bytes] }
}

function keyOf({ byId, params, after = [] }: Reading): string {
  return params.length + after.length === 0 ? byId : JSON.stringify([byId, params, after])
}

async function readOne(
  db: Queryable,
  { byId, params, after }: Reading,
  id: number,
): Promise<Row | undefined> {
  const [row] = await db.all(byId, after ? [...params, id, ...after] : [...params, id])
  return row
}

async function readSeveral(
  db: Queryable,
  dialect: Dialect,
  reading: Reading,
  ids: readonly number[],
): Promise<(Row | undefined)[]> {
  const [first] = ids
  if (first !== undefined && ids.length === 1) return [await readOne(db, reading, first)]
  const { upToId, and = '', params, after = [] } = reading
  const sql = `${upToId} in (${dialect.json.rows('integer')})${and}`
  const rows = await db.all(sql, [...params, JSON.stringify(ids), ...after])
  const byId = new Map(rows.map((row) => [row['id'], row]))
  return ids.map((id) => byId.get(id))
}
