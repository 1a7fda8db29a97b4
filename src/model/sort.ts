// The order of a find or a search.
import type { Criteria, Step } from './criteria.js'
import type { Field } from './field.js'
import type { Model } from './model.js'
import { isOverList, pathOf, stepOf } from './path.js'
import { namesFrom } from './selection.js'
import type { Sight } from './sight.js'

const MAX_SORT_KEYS = 8

export interface SortKey {
  readonly steps: readonly Step[]
  readonly field: Field
  readonly descending: boolean
  /** The records that are sorted by it; in all others it is null. */
  readonly mask?: Criteria
}

export function sortFrom(sight: Sight, model: Model, sortBy: unknown, faults: string[]): SortKey[] {
  if (sortBy === undefined || sortBy === null) return []
  const keys = namesFrom('sortBy', sortBy, faults)
  if (keys.length > MAX_SORT_KEYS) {
    faults.push(`sortBy must have at most ${MAX_SORT_KEYS} keys`)
    return []
  }
  return keys.flatMap((key) => {
    const descending = key.startsWith('-')
    const sorted = sortKey(sight, model, key.replace(/^[-+]/, ''))
    if (typeof sorted !== 'string') return { ...sorted, descending }
    faults.push(`sortBy: ${sorted}`)
    return []
  })
}

/** A reference is sorted by the name of what it leads to. */
function sortKey(sight: Sight, model: Model, name: string): Omit<SortKey, 'descending'> | string {
  const path = pathOf(sight, model, name)
  if (typeof path === 'string') return path
  const { field, steps } = path
  if (isOverList(path) || field.relation?.isList) return `"${name}" is a list, which has no order`
  if (field.type === 'json') return `"${name}" is json, which has no order`
  if (!field.relation) return { steps, field, ...masked(sight.mask(path.model, field)) }
  const step = stepOf(sight, path.model, field)
  const nameField = sight.readable(step.target, step.target.nameField ?? '')
  if (!nameField)
    return `"${name}" leads to ${step.target.name}, which has no name to sort by: use ${name}.id`
  return { steps: [...steps, step], field: nameField, ...masked(sight.mask(step.target, nameField)) }
}

function masked(mask: Criteria | undefined): Pick<SortKey, 'mask'> {
  return mask ? { mask } : {}
}
