// Estimates the time of a search from the sizes of all tables that it reads. The estimate is an upper bound: it assumes that no index helps,
// that every condition is evaluated for every record, and that all texts need folding.
import type { Criteria, PathStep } from '../../model/query/criteria.js'
import { isReference, type Model } from '../../model/definition/model.js'
import { ID_FIELD } from '../../model/query/path.js'
import type { Search } from '../../model/query/search.js'
import type { TableSize } from './table-sizes.js'

/** Visiting a row without its texts: 100 ns by a scan or a lookup, 450 ns by a sort, which the estimate counts as two visits in two passes. */
const VISIT_NS = 300
const READ_BYTE_NS = 1
/** `like` folds texts: 50 ns for each byte of a letter with an accent, 4 ns for others. */
const FOLD_BYTE_NS = 60
/** In the worst case `like` compares every character of the text with every character of the pattern. */
const LIKE_STEP_NS = 8
const LIST_VALUE_NS = 500
/** The statement reads the records of the page and counts all matches. */
const PASSES = 2

/**
 * A search in this process blocks the event loop, so its estimate must be lower than this. The actual time is far lower than the estimate, and
 * on a machine that is several times slower it stays below 20 ms.
 */
export const MAX_SHORT_SEARCH_NS = 4_000_000

type Sizes = ReadonlyMap<Model, TableSize>
type ValuePath = Pick<Search['sort'][number], 'steps' | 'field' | 'mask'>

/** The records for which a condition is evaluated, and the bytes of their rows. */
interface TestedRows {
  readonly rows: number
  readonly bytes: number
}

/** The models whose tables the conditions and sort keys of a search read. The selected fields of related records are not included. */
export function collectSearchedModels(model: Model, { where, visible, sort }: Search): ReadonlySet<Model> {
  const models = new Set([model])
  const addPath = ({ steps, mask }: Pick<ValuePath, 'steps' | 'mask'>) => {
    for (const step of steps) {
      models.add(step.target)
      for (const each of [step.mask, step.visible]) if (each) addCriteria(each)
    }
    if (mask) addCriteria(mask)
  }
  const addCriteria = (criteria: Criteria) => {
    if (criteria.kind === 'comparison') addPath(criteria)
    else for (const each of [criteria.criteria].flat()) addCriteria(each)
  }
  for (const each of [where, visible]) if (each) addCriteria(each)
  for (const key of sort) addPath(key)
  return models
}

/** Nanoseconds; Infinity if the search may read any number of rows. */
export function estimateSearchNs(sizes: Sizes, model: Model, { where, visible, sort }: Search): number {
  const all = findSize(sizes, model)
  const conditions = [where, visible].reduce(
    (sum, each) => sum + (each ? estimateCriteria(sizes, each, all) : 0),
    0,
  )
  const keys = sort.reduce((sum, key) => sum + estimatePath(sizes, key, all).ns, 0)
  return PASSES * (estimateRead(all) + conditions + keys)
}

function findSize(sizes: Sizes, model: Model): TableSize {
  return sizes.get(model) ?? { rows: Infinity, bytes: Infinity, maxRowBytes: Infinity }
}

function estimateRead({ rows, bytes }: TestedRows): number {
  return rows * VISIT_NS + bytes * READ_BYTE_NS
}

function estimateCriteria(sizes: Sizes, criteria: Criteria, tested: TestedRows): number {
  if (criteria.kind !== 'comparison')
    return [criteria.criteria].flat().reduce((sum, each) => sum + estimateCriteria(sizes, each, tested), 0)
  const { ns, compared } = estimatePath(sizes, criteria, tested)
  const { operator, values } = criteria
  const isLike = operator === 'like' || operator === 'notLike'
  const [pattern] = values
  const patternLength = typeof pattern === 'string' ? pattern.length : 0
  const matching = isLike ? compared.bytes * (FOLD_BYTE_NS + LIKE_STEP_NS * patternLength) : 0
  return ns + matching + values.length * LIST_VALUE_NS
}

/** The time to reach and read the values at the end of a path, and the rows that have them. */
function estimatePath(
  sizes: Sizes,
  { steps, field, mask }: ValuePath,
  tested: TestedRows,
): { readonly ns: number; readonly compared: TestedRows } {
  let ns = 0
  let compared = tested
  for (const step of endsInReference(steps, field) ? steps.slice(0, -1) : steps) {
    if (step.mask) ns += estimateCriteria(sizes, step.mask, compared)
    compared = followStep(sizes, step, compared)
    if (step.visible) ns += estimateCriteria(sizes, step.visible, compared)
    ns += estimateRead(compared)
  }
  if (mask) ns += estimateCriteria(sizes, mask, compared)
  return { ns: ns + estimateRead(compared), compared }
}

/** True if the reference itself holds the compared id, so the related table is not read. */
function endsInReference(steps: readonly PathStep[], field: ValuePath['field']): boolean {
  const last = steps.at(-1)
  return field === ID_FIELD && last !== undefined && isReference(last.field) && !last.mask && !last.visible
}

/** A reference is looked up by primary key, once for each record. The records of any other relation may need a scan of their table. */
function followStep(sizes: Sizes, { field, target }: PathStep, { rows }: TestedRows): TestedRows {
  const size = findSize(sizes, target)
  // 0 × Infinity is not a number.
  if (rows === 0) return { rows: 0, bytes: 0 }
  if (isReference(field)) return { rows, bytes: rows * size.maxRowBytes }
  return { rows: rows * size.rows, bytes: rows * size.bytes }
}
