// Keyset pagination: the records after a cursor as SQL conditions. Nulls sort last in both directions, and the id is the last sort key.
import type { PageCursor } from '../../model/query/cursor.js'
import type { SortKey } from '../../model/query/sort.js'
import { getColumn } from '../sql/column.js'
import { findOwnField } from './known-total.js'
import type { SqlScope } from '../sql/criteria.js'
import type { Row } from '../engine/database.js'
import { compileOrderBy, type SortKeySql } from '../sql/order.js'
import type { Table } from '../sql/table.js'

/** A contiguous range of the sort order. */
export interface SortRange {
  readonly where: string
  readonly order: string
}

/** The cursor of a row that contains its sort keys. */
export function readCursor({ dialect }: Table, sort: readonly SortKey[], row: Row): PageCursor {
  const values = sort.map(({ field }, index) => getColumn(dialect, field).decode(row[`$k${index}`] ?? null))
  return { values, id: Number(row['id']) }
}

/**
 * The ranges after the cursor, nearest first: records with the same first key, with later keys, with null. Each is a range of an index on
 * that key in the order of the index. With a single condition the engines would scan the records before the cursor, or sort.
 */
export function compileRangesAfter(
  scope: SqlScope,
  sort: readonly SortKey[],
  keys: readonly SortKeySql[],
  { values, id }: PageCursor,
): SortRange[] {
  const placeholders = sort.map(({ field }, index) => {
    const value = getColumn(scope.dialect, field).encode(values[index] ?? null)
    return value === null ? undefined : scope.bind(value)
  })
  const idPlaceholder = scope.bind(id)
  const compileAfterFrom = (index: number): string => {
    const key = keys[index]
    if (!key) return `t."id" > ${idPlaceholder}`
    const [placeholder, { column }] = [placeholders[index], key]
    const rest = compileAfterFrom(index + 1)
    if (placeholder === undefined) return `(${column} is null and ${rest})`
    return `(${compileAfter(key, placeholder)} or ${column} is null or (${column} = ${placeholder} and ${rest}))`
  }
  const [key, ...others] = keys
  if (!key || !startsWithOwnField(sort)) return [{ where: compileAfterFrom(0), order: compileOrderBy(keys) }]
  const [placeholder, nullRange] = [placeholders[0], compileNullRange(key, others)]
  if (placeholder === undefined)
    return [{ where: `${nullRange.where} and ${compileAfterFrom(1)}`, order: nullRange.order }]
  return [
    { where: `${key.column} = ${placeholder} and ${compileAfterFrom(1)}`, order: compileOrderBy(others) },
    compileNonNullRange(key, others, compileAfter(key, placeholder)),
    nullRange,
  ]
}

/** The whole sort order as ranges of an index; undefined if no index can help. */
export function compileAllRanges(
  sort: readonly SortKey[],
  keys: readonly SortKeySql[],
): SortRange[] | undefined {
  const [key, ...others] = keys
  if (!key || !startsWithOwnField(sort)) return undefined
  return [compileNonNullRange(key, others, `${key.column} is not null`), compileNullRange(key, others)]
}

/** True if the first key is a field of the record itself. No index contains other keys. */
function startsWithOwnField([first]: readonly SortKey[]): boolean {
  return first !== undefined && findOwnField(first) !== undefined
}

/** The range contains no nulls, so its order needs no `nulls last` and matches an index. */
function compileNonNullRange(
  { column, descending }: SortKeySql,
  others: readonly SortKeySql[],
  where: string,
): SortRange {
  return { where, order: `${column}${descending ? ' desc' : ''}, ${compileOrderBy(others)}` }
}

/** The order names the key, although it is always null, because PostgreSQL does not use the index otherwise. */
function compileNullRange({ column }: SortKeySql, others: readonly SortKeySql[]): SortRange {
  return { where: `${column} is null`, order: `${column}, ${compileOrderBy(others)}` }
}

function compileAfter({ column, descending }: SortKeySql, placeholder: string): string {
  return `${column} ${descending ? '<' : '>'} ${placeholder}`
}
