// What comes behind a position in an order, as SQL. Nulls come last in both directions, and the id decides in the end.
import type { Position } from '../../model/query/cursor.js'
import type { SortKey } from '../../model/query/sort-key.js'
import { columnOf } from '../sql/column.js'
import { fieldAsked } from './known-total.js'
import type { Scope } from '../sql/criteria.js'
import type { Row } from '../engine/database.js'
import { orderOf, type KeySql } from '../sql/order.js'
import type { Table } from '../sql/table.js'

/** A stretch of an order. */
export interface Stretch {
  readonly where: string
  readonly order: string
}

/** The position of a row that has the keys beside what it shows. */
export function positionIn({ dialect }: Table, sort: readonly SortKey[], row: Row): Position {
  const values = sort.map(({ field }, index) => columnOf(dialect, field).decode(row[`$k${index}`] ?? null))
  return { values, id: Number(row['id']) }
}

/**
 * What comes behind the position, nearest first: records with the same first key, with later ones, with none. Each is a range of an index
 * on that key, and in the order of the index; one condition for all would have the engines walk over what lies before, or sort.
 */
export function stretchesBehind(
  scope: Scope,
  sort: readonly SortKey[],
  keys: readonly KeySql[],
  { values, id }: Position,
): Stretch[] {
  const marks = sort.map(({ field }, index) => {
    const value = columnOf(scope.dialect, field).encode(values[index] ?? null)
    return value === null ? undefined : scope.mark(value)
  })
  const idMark = scope.mark(id)
  const behind = (from: number): string => {
    const key = keys[from]
    if (!key) return `t."id" > ${idMark}`
    const [mark, { column }] = [marks[from], key]
    const rest = behind(from + 1)
    if (mark === undefined) return `(${column} is null and ${rest})`
    return `(${later(key, mark)} or ${column} is null or (${column} = ${mark} and ${rest}))`
  }
  const [key, ...others] = keys
  if (!key || !beginsOwn(sort)) return [{ where: behind(0), order: orderOf(keys) }]
  const [mark, empty] = [marks[0], withoutFirst(key, others)]
  if (mark === undefined) return [{ ...empty, where: `${empty.where} and ${behind(1)}` }]
  return [
    { where: `${key.column} = ${mark} and ${behind(1)}`, order: orderOf(others) },
    withFirst(key, others, later(key, mark)),
    empty,
  ]
}

/** All of the order, in the same way: undefined where no index could help. */
export function stretchesOfAll(sort: readonly SortKey[], keys: readonly KeySql[]): Stretch[] | undefined {
  const [key, ...others] = keys
  if (!key || !beginsOwn(sort)) return undefined
  return [withFirst(key, others, `${key.column} is not null`), withoutFirst(key, others)]
}

/** Whether the first key is a field of the record itself: else no index has it. */
function beginsOwn([first]: readonly SortKey[]): boolean {
  return first !== undefined && fieldAsked(first) !== undefined
}

/** Among these are no nulls, so their order is said in the words of an index. */
function withFirst({ column, descending }: KeySql, others: readonly KeySql[], where: string): Stretch {
  return { where, order: `${column}${descending ? ' desc' : ''}, ${orderOf(others)}` }
}

/** PostgreSQL does not see that what is null is all the same: its order names the key, too. */
function withoutFirst({ column }: KeySql, others: readonly KeySql[]): Stretch {
  return { where: `${column} is null`, order: `${column}, ${orderOf(others)}` }
}

function later({ column, descending }: KeySql, mark: string): string {
  return `${column} ${descending ? '<' : '>'} ${mark}`
}
