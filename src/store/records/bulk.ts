// Bulk inserts of records that already have ids and versions, and bulk reads by id.
import type { ModelField } from '../../model/catalog/catalog.js'
import type { Criteria } from '../../model/query/criteria.js'
import type { SortKey } from '../../model/query/sort.js'
import type { Values } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import { compilePredicate, SqlScope } from '../sql/criteria.js'
import type { JsonColumn } from '../engine/columns.js'
import type { Dialect, Queryable, Transaction } from '../engine/database.js'
import { toTableName } from '../engine/names.js'
import { compileSortKeys, compileOrderBy } from '../sql/order.js'
import { toNotUniqueError } from './not-unique.js'
import { findMembership } from '../sql/relation.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

export interface RowWithId {
  readonly id: number
  readonly version: number
  readonly values: Values
}

export async function insertWithIds(
  tx: Transaction,
  table: Table,
  rows: readonly RowWithId[],
): Promise<void> {
  const { rowWriter } = table
  const encoded = rows.map(({ id, version, values }) => [id, version, ...rowWriter.encode(values)])
  try {
    await rowWriter.bulkInsert.run(tx, encoded)
  } catch (error) {
    throw toNotUniqueError(table, error)
  }
}

/** Inserts links of many-to-many relations. The owners must be new records, which have no links yet. */
export async function insertLinks(
  tx: Transaction,
  dialect: Dialect,
  list: ModelField,
  pairs: readonly (readonly [owner: number, member: number])[],
): Promise<void> {
  const { table } = findMembership(list)
  await dialect.createBulkInsert({ table, columns: LINK_COLUMNS }).run(tx, pairs)
}

const LINK_COLUMNS = [
  { name: 'owner', storage: 'integer' },
  { name: 'member', storage: 'integer' },
] as const satisfies JsonColumn[]

/** Reads the versions of the existing records among `ids`. */
export async function readVersions(
  db: Queryable,
  { name, dialect }: Table,
  ids: readonly number[],
): Promise<Map<number, number>> {
  if (ids.length === 0) return new Map()
  const rows = await db.all(
    `select "id", "version" from ${name} where "id" in (${dialect.json.unnest('integer')})`,
    [JSON.stringify(ids)],
  )
  return new Map(rows.map((row) => [Number(row['id']), Number(row['version'])]))
}

export interface FindByIdsOptions {
  readonly select: Select
  /** Criteria of the records that the user may read. */
  readonly visible?: Criteria | undefined
  /** Sort keys, before the id. Without them the order is undefined. */
  readonly order?: readonly SortKey[] | undefined
}

/** Reads the existing records among `ids` that the user may read. */
export async function findByIds(
  db: Queryable,
  { name, dialect }: Table,
  ids: readonly number[],
  { select, visible, order }: FindByIdsOptions,
): Promise<WireRecord[]> {
  const permitted = visible && compilePredicate(dialect, visible)
  const where = `t."id" in (${dialect.json.unnest('integer')})${permitted ? ` and ${permitted.sql}` : ''}`
  const scope = new SqlScope(dialect)
  const orderBy = order ? ` order by ${compileOrderBy(compileSortKeys(scope, order))}` : ''
  const [joins, end] = [scope.render(scope.joins), scope.render(orderBy)]
  const params = [
    ...select.params,
    ...joins.params,
    JSON.stringify(ids),
    ...(permitted?.params ?? []),
    ...end.params,
  ]
  const rows = await db.all(
    `select ${select.columns} from ${name} as t ${joins.sql} where ${where}${end.sql}`,
    params,
  )
  return rows.map((row) => select.toRecord(row))
}

/** Reads the greatest id in the table; 0 if the table is empty. */
export async function readMaxId(db: Queryable, { name }: Table): Promise<number> {
  const [row] = await db.all(`select max("id") as "last" from ${name}`)
  return Number(row?.['last'] ?? 0)
}

export async function countRows(db: Queryable, { name }: Table): Promise<number> {
  const [row] = await db.all(`select count(*) as "total" from ${name}`)
  return Number(row?.['total'])
}

/** Makes the engine assign ids greater than `id` from now on. */
export async function advanceIds(tx: Transaction, { model, dialect }: Table, id: number): Promise<void> {
  for (const sql of dialect.advanceIds(toTableName(model.name), id)) await tx.run(sql)
}
