// Many records at once, with ids and versions that they bring along.
import type { FieldOf } from '../../model/catalog/catalog.js'
import type { Criteria } from '../../model/query/criteria.js'
import type { SortKey } from '../../model/query/sort-key.js'
import type { Values } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import { predicateOf, Scope } from '../sql/criteria.js'
import type { Column, Dialect, JsonColumn, Queryable, SqlValue, Transaction } from '../engine/database.js'
import { Insertion } from '../sql/bulk-insert.js'
import { columnFor } from '../sql/many-rows.js'
import { tableName } from '../engine/names.js'
import { keysIn, orderOf } from '../sql/order.js'
import { naming } from './records.js'
import { membershipOf } from '../sql/relation.js'
import type { Select } from '../sql/select.js'
import { encoderOf } from '../sql/column.js'
import type { Table } from '../sql/table.js'

export interface GivenRow {
  readonly id: number
  readonly version: number
  readonly values: Values
}

/** How the rows of one table go in. */
interface GivenInsertion {
  readonly insertion: Insertion
  readonly columns: readonly { readonly name: string; readonly encode: Column['encode'] }[]
}

const GIVEN = new WeakMap<Table, GivenInsertion>()

function insertionOf(table: Table): GivenInsertion {
  const known = GIVEN.get(table)
  if (known) return known
  const { dialect, name, stored } = table
  const made = {
    insertion: new Insertion(dialect, name, [...KEYS, ...stored.map(columnFor)]),
    columns: stored.map((field) => ({ name: field.name, encode: encoderOf(dialect, field) })),
  }
  GIVEN.set(table, made)
  return made
}

const KEYS = [
  { name: 'id', storage: 'integer' },
  { name: 'version', storage: 'integer' },
] as const satisfies JsonColumn[]

export async function insertGiven(tx: Transaction, table: Table, rows: readonly GivenRow[]): Promise<void> {
  const { insertion, columns } = insertionOf(table)
  const given = rows.map(({ id, version, values }) => {
    const row: SqlValue[] = [id, version]
    for (const { name, encode } of columns) row.push(encode(values[name] ?? null))
    return row
  })
  await naming(table, () => insertion.run(tx, given))
}

/** The links of new records, which have none yet. */
export async function insertLinks(
  tx: Transaction,
  dialect: Dialect,
  list: FieldOf,
  pairs: readonly (readonly [owner: number, member: number])[],
): Promise<void> {
  await new Insertion(dialect, membershipOf(list).table, LINK).run(tx, pairs)
}

const LINK = [
  { name: 'owner', storage: 'integer' },
  { name: 'member', storage: 'integer' },
] as const satisfies JsonColumn[]

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

interface Reading {
  /** The records that whoever asks may see. */
  readonly seen?: Criteria | undefined
  /** Before the id; without it they come in no order. */
  readonly order?: readonly SortKey[] | undefined
}

/** Those of these that are there, and that whoever asks may see. */
export async function readAll(
  db: Queryable,
  { name, dialect }: Table,
  ids: readonly number[],
  select: Select,
  { seen, order }: Reading = {},
): Promise<WireRecord[]> {
  const permitted = seen && predicateOf(dialect, seen)
  const some = `t."id" in (${dialect.json.rows('integer')})${permitted ? ` and ${permitted.sql}` : ''}`
  const scope = new Scope(dialect)
  const by = order ? ` order by ${orderOf(keysIn(scope, order))}` : ''
  const [joins, end] = [scope.render(scope.joins), scope.render(by)]
  const rows = await db.all(
    `select ${select.columns} from ${name} as t ${joins.sql} where ${some}${end.sql}`,
    [
      ...[...select.params, ...joins.params, JSON.stringify(ids)],
      ...[...(permitted?.params ?? []), ...end.params],
    ],
  )
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
