// Totals of searches from the counters, without counting records.
import type { Comparison, Criteria } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import { isReference, type Model } from '../../model/definition/model.js'
import { ID_FIELD } from '../../model/query/path.js'
import type { Search } from '../../model/query/search.js'
import { toCounterKey, VALUE_COUNT_TABLE } from '../counters/counted-fields.js'
import type { Dialect, SqlValue } from '../engine/database.js'
import { isDefaultPage, MAX_SCANNED_ROWS, compileTotal } from './default-page-sql.js'
import type { SqlFragment } from '../sql/parameters.js'
import type { Table } from '../sql/table.js'

/** The total of a search as a select of one value; undefined if the counters do not know it. */
export function compileKnownTotal(table: Table, search: Search): SqlFragment | undefined {
  const { model, dialect, historicalRows } = table
  if (search.visible || historicalRows || (search.archived && model.archived)) return undefined
  if (!search.where) return { sql: `select ${compileTotal(model)}`, params: [] }
  const equality = findCountedEquality(model, dialect, search.where)
  if (!equality) return undefined
  const condition = `model = '${model.name}' and field = '${equality.field.name}' and value = ?`
  const sql = `select coalesce((select n from ${VALUE_COUNT_TABLE} where ${condition}), 0)`
  return { sql, params: [equality.key] }
}

/** True if the page scans only few more records than it returns, for any offset and table size. */
export function isBoundedSearch(table: Table, search: Search): boolean {
  // Archived records may follow a cursor in any number.
  if (isDefaultPage(table, search)) return !search.after || !table.model.archived
  const isNear = search.after !== undefined || search.offset < MAX_SCANNED_ROWS
  if (search.sort.length > 0 || !isNear || table.model.archived) return false
  return search.where !== undefined && compileKnownTotal(table, search) !== undefined
}

interface CountedEquality {
  readonly field: Field
  readonly key: SqlValue
}

/** The comparison, if the criteria are a single one that the counters know: a counted field of the record itself has a value. */
function findCountedEquality(model: Model, dialect: Dialect, where: Criteria): CountedEquality | undefined {
  const comparison = findSoleComparison(where)
  const field = comparison && findOwnField(comparison)
  if (!comparison || !field || !model.countedFields.includes(field)) return undefined
  if (comparison.operator === 'isNull') return { field, key: toCounterKey(dialect, field, null) }
  const [value = null] = comparison.values
  // No value equals null.
  if (comparison.operator !== '=' || value === null) return undefined
  return { field, key: toCounterKey(dialect, field, field.relation ? { id: value } : value) }
}

function findSoleComparison(criteria: Criteria): Comparison | undefined {
  if (criteria.kind === 'comparison') return criteria
  const [only, ...others] = criteria.kind === 'not' ? [] : criteria.criteria
  return only && others.length === 0 ? findSoleComparison(only) : undefined
}

/** The compared field, if it is one of the record itself. The id of a related record counts, because the reference holds it. */
export function findOwnField({
  steps,
  field,
  mask,
}: Pick<Comparison, 'steps' | 'field' | 'mask'>): Field | undefined {
  const [step, ...further] = steps
  if (mask || further.length > 0) return undefined
  if (!step) return field
  return field === ID_FIELD && isReference(step.field) && !step.mask && !step.visible ? step.field : undefined
}
