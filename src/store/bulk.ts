// Many records at once, with ids and versions that they bring along.
import type { FieldOf } from '../model/catalog.js'
import type { Criteria } from '../model/criteria.js'
import type { Values } from '../model/value.js'
import type { WireRecord } from '../wire.js'
import { predicateOf } from './criteria-sql.js'
import type { Queryable, SqlValue, Transaction } from './database.js'
import { quote, tableName } from './names.js'
import { naming } from './records.js'
import { membershipOf } from './relation-sql.js'
import type { Select } from './select.js'
import { encode } from './column.js'
import type { Table } from './table.js'

export interface GivenRow {
  readonly id: number
  readonly version: number
  readonly values: Values
}

/** Rows in one statement. Few sizes, so that few statements are prepared. */
const AT_ONCE = [64, 8, 1] as const
/** SQLite takes no more in one statement. */
const MAX_PARAMETERS = 32_000

export async function insertGiven(tx: Transaction, table: Table, rows: readonly GivenRow[]): Promise<void> {
  const { dialect, stored } = table
  const names = stored.map((field) => `, ${quote(field.name)}`).join('')
  const into = `insert into ${table.name} ("id", "version"${names})`
  const fill = ({ id, version, values }: GivenRow, params: SqlValue[]) => {
    params.push(id, version)
    for (const field of stored) params.push(encode(dialect, field, values[field.name] ?? null))
  }
  await naming(table, () => insertAll(tx, into, stored.length + 2, rows, fill))
}

/** The links of new records, which have none yet. */
export async function insertLinks(
  tx: Transaction,
  list: FieldOf,
  pairs: readonly (readonly [owner: number, member: number])[],
): Promise<void> {
  const into = `insert into ${membershipOf(list).table} ("owner", "member")`
  await insertAll(tx, into, 2, pairs, ([owner, member], params) => params.push(owner, member))
}

async function insertAll<T>(
  tx: Transaction,
  into: string,
  width: number,
  rows: readonly T[],
  fill: (row: T, params: SqlValue[]) => unknown,
): Promise<void> {
  const marks = `(${Array.from({ length: width }, () => '?').join(', ')})`
  const sizes = AT_ONCE.filter((many) => many === 1 || many * width <= MAX_PARAMETERS)
  const statements = sizes.map(
    (many) => `${into} values ${Array.from({ length: many }, () => marks).join(', ')}`,
  )
  for (let start = 0; start < rows.length;) {
    const fitting = sizes.findIndex((many) => many <= rows.length - start)
    const end = start + (sizes[fitting] ?? 1)
    const params: SqlValue[] = []
    for (; start < end; start++) fill(rows[start] as T, params)
    await tx.run(statements[fitting] ?? '', params)
  }
}

/** The versions of those that are there. */
export async function versionsOf(
  db: Queryable,
  { name, dialect }: Table,
  ids: readonly number[],
): Promise<Map<number, number>> {
  if (ids.length === 0) return new Map()
  const rows = await db.all(
    `select "id", "version" from ${name} where "id" in (${dialect.json.rows('integer')})`,
    [JSON.stringify(ids)],
  )
  return new Map(rows.map((row) => [Number(row['id']), Number(row['version'])]))
}

/** Those of these that are there, and that whoever asks may see, in no order. */
export async function readAll(
  db: Queryable,
  { name, dialect }: Table,
  ids: readonly number[],
  select: Select,
  seen?: Criteria,
): Promise<WireRecord[]> {
  const permitted = seen && predicateOf(dialect, seen)
  const some = `t."id" in (${dialect.json.rows('integer')})${permitted ? ` and ${permitted.sql}` : ''}`
  const rows = await db.all(`select ${select.columns} from ${name} as t where ${some}`, [
    ...[...select.params, JSON.stringify(ids)],
    ...(permitted?.params ?? []),
  ])
  return rows.map((row) => select.read(row))
}

/** The greatest id that is there, or 0. */
export async function greatestId(db: Queryable, { name }: Table): Promise<number> {
  const [row] = await db.all(`select max("id") as "last" from ${name}`)
  return Number(row?.['last'] ?? 0)
}

/** How many there are. */
export async function countAll(db: Queryable, { name }: Table): Promise<number> {
  const [row] = await db.all(`select count(*) as "total" from ${name}`)
  return Number(row?.['total'])
}

/** From here on the engine gives ids after this one. */
export async function passIds(tx: Transaction, { model, dialect }: Table, id: number): Promise<void> {
  for (const sql of dialect.passIds(tableName(model.name), id)) await tx.run(sql)
}
