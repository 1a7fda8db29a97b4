// The keys of an order as SQL. Nulls come last in both directions, and the id decides in the end.
import type { SortKey } from '../../model/query/sort-key.js'
import type { SqlScope } from './criteria.js'

/** A key of an order in a statement. */
export interface SortKeySql {
  readonly column: string
  readonly descending: boolean
  /** What it is called where only ids and keys are looked at. */
  readonly name: string
}

export function compileSortKeys(scope: SqlScope, sort: readonly SortKey[]): SortKeySql[] {
  return sort.map(({ steps, field, descending, mask }, index) => ({
    column: scope.compileColumn(steps, field, mask),
    descending,
    name: `"$k${index}"`,
  }))
}

/** Behind `order by`. */
export function compileOrderBy(keys: readonly Omit<SortKeySql, 'name'>[], id = 't."id"'): string {
  const each = keys.map(({ column, descending }) => `${column} ${descending ? 'desc' : 'asc'} nulls last`)
  return [...each, id].join(', ')
}
