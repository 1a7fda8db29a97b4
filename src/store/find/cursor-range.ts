// What comes behind a position in an order, as SQL. Nulls come last in both directions, and the id decides in the end.
import type { PageCursor } from '../../model/query/cursor.js'
import type { SortKey } from '../../model/query/sort-key.js'
import { getColumn } from '../sql/column.js'
import { findOwnField } from './known-total.js'
import type { SqlScope } from '../sql/criteria.js'
import type { Row } from '../engine/database.js'
import { compileOrderBy, type SortKeySql } from '../sql/order.js'
import type { Table } from '../sql/table.js'

/** A stretch of an order. */
export interface SortRange {
  readonly where: string
  readonly order: string
}

/** The position of a row that has the keys beside what it shows. */
export function readCursor({ dialect }: Table, sort: readonly SortKey[], row: Row): PageCursor {
  const values = sort.map(({ field }, index) => getColumn(dialect, field).decode(row[`$k${index}`] ?? null))
  return { values, id: Number(row['id']) }
}

/**
 * What comes behind the position, nearest first: records with the same first key, with later ones, with none. Each is a range of an index
 * on that key, and in the order of the index; one condition for all would have the engines walk over what lies before, or sort.
 */
export function compileRangesAfter(
  scope: SqlScope,
  sort: readonly SortKey[],
  keys: readonly SortKeySql[],
  { values, id }: PageCursor,
): SortRange[] {
  const marks = sort.map(({ field }, index) => {
    const value = getColumn(scope.dialect, field).encode(values[index] ?? null)
    return value === null ? undefined : scope.bind(value)
  })
  const idMark = scope.bind(id)
  const behind = (from: number): string => {
    const key = keys[from]
    if (!key) return `t."id" > ${idMark}`
    const [mark, { column }] = [marks[from], key]
    const rest = behind(from + 1)
    if (mark === undefined) return `(${column} is null and ${rest})`
    return `(${compileAfter(key, mark)} or ${column} is null or (${column} = ${mark} and ${rest}))`
  }
  const [key, ...others] = keys
  if (!key || !startsWithOwnField(sort)) return [{ where: behind(0), order: compileOrderBy(keys) }]
  const [mark, empty] = [marks[0], compileNullRange(key, others)]
  if (mark === undefined) return [{ ...empty, where: `${empty.where} and ${behind(1)}` }]
  return [
    { where: `${key.column} = ${mark} and ${behind(1)}`, order: compileOrderBy(others) },
    compileNonNullRange(key, others, compileAfter(key, mark)),
    empty,
  ]
}

/** All of the order, in the same way: undefined where no index could help. */
export function compileAllRanges(
  sort: readonly SortKey[],
  keys: readonly SortKeySql[],
): SortRange[] | undefined {
  const [key, ...others] = keys
  if (!key || !startsWithOwnField(sort)) return undefined
  return [compileNonNullRange(key, others, `${key.column} is not null`), compileNullRange(key, others)]
}

/** Whether the first key is a field of the record itself: else no index has it. */
function startsWithOwnField([first]: readonly SortKey[]): boolean {
  return first !== undefined && findOwnField(first) !== undefined
}

/** Among these are no nulls, so their order is said in the words of an index. */
function compileNonNullRange(
  { column, descending }: SortKeySql,
  others: readonly SortKeySql[],
  where: string,
): SortRange {
  return { where, order: `${column}${descending ? ' desc' : ''}, ${compileOrderBy(others)}` }
}

/** PostgreSQL does not see that what is null is all the same: its order names the key, too. */
function compileNullRange({ column }: SortKeySql, others: readonly SortKeySql[]): SortRange {
  return { where: `${column} is null`, order: `${column}, ${compileOrderBy(others)}` }
}

function compileAfter({ column, descending }: SortKeySql, mark: string): string {
  return `${column} ${descending ? '<' : '>'} ${mark}`
}
