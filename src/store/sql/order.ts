// Sort keys as SQL. Nulls sort last in both directions, and the id is the last sort key.
import type { SortKey } from '../../model/query/sort.js'
import type { SqlScope } from './criteria.js'

export interface SortKeySql {
  readonly column: string
  readonly descending: boolean
  /** The name of the key as a column of the result. */
  readonly name: string
}

export function compileSortKeys(scope: SqlScope, sort: readonly SortKey[]): SortKeySql[] {
  return sort.map(({ steps, field, descending, mask }, index) => ({
    column: scope.compileColumn(steps, field, mask),
    descending,
    name: `"$k${index}"`,
  }))
}

/** The expressions after `order by`. */
export function compileOrderBy(keys: readonly Omit<SortKeySql, 'name'>[], id = 't."id"'): string {
  const each = keys.map(({ column, descending }) => `${column} ${descending ? 'desc' : 'asc'} nulls last`)
  return [...each, id].join(', ')
}
