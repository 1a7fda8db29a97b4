// The row of one record. Where those of several are wanted at the same time, they are read together.
import type { Criteria } from '../model/criteria.js'
import { predicateOf } from './criteria-sql.js'
import type { Dialect, Queryable, Row, SqlValue } from './database.js'
import type { Select } from './select.js'
import type { Table } from './table.js'

export async function rowOf(
  db: Queryable,
  { name, dialect }: Table,
  id: number,
  select: Select,
  seen?: Criteria,
): Promise<Row | undefined> {
  const permitted = seen && predicateOf(dialect, seen)
  const reading: Reading = {
    from: `select ${select.columns} from ${name} as t where t."id"`,
    and: permitted ? ` and ${permitted.sql}` : '',
    before: select.params,
    after: permitted?.params ?? [],
  }
  if (!db.together) return readOne(db, reading, id)
  return db.together(keyOf(reading), id, (ids) => readSeveral(db, dialect, reading, ids))
}

/** What is the same for every id. */
interface Reading {
  readonly from: string
  readonly and: string
  readonly before: readonly SqlValue[]
  readonly after: readonly SqlValue[]
}

function keyOf({ from, and, before, after }: Reading): string {
  return before.length + after.length === 0 ? from + and : JSON.stringify([from, and, before, after])
}

async function readOne(
  db: Queryable,
  { from, and, before, after }: Reading,
  id: number,
): Promise<Row | undefined> {
  const [row] = await db.all(`${from} = ?${and}`, [...before, id, ...after])
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
  const { from, and, before, after } = reading
  const sql = `${from} in (${dialect.json.rows('integer')})${and}`
  const rows = await db.all(sql, [...before, JSON.stringify(ids), ...after])
  const byId = new Map(rows.map((row) => [row['id'], row]))
  return ids.map((id) => byId.get(id))
}
