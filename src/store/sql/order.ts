// The keys of an order as SQL. Nulls come last in both directions, and the id decides in the end.
import type { SortKey } from '../../model/query/sort-key.js'
import type { Scope } from './criteria.js'

/** A key of an order in a statement. */
export interface KeySql {
  readonly column: string
  readonly descending: boolean
  /** What it is called where only ids and keys are looked at. */
  readonly name: string
}

export function keysIn(scope: Scope, sort: readonly SortKey[]): KeySql[] {
  return sort.map(({ steps, field, descending, mask }, index) => ({
    column: scope.column(steps, field, mask),
    descending,
    name: `"$k${index}"`,
  }))
}

/** Behind `order by`. */
export function orderOf(keys: readonly Omit<KeySql, 'name'>[], id = 't."id"'): string {
  const each = keys.map(({ column, descending }) => `${column} ${descending ? 'desc' : 'asc'} nulls last`)
  return [...each, id].join(', ')
}
