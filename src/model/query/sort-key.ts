// A key of an order: of a find, a search, or a list of a record.
import type { Criteria, PathStep } from './criteria.js'
import type { Field } from '../values/field-types.js'
import type { Model } from '../definition/model.js'
import { isOverList, resolvePath, buildStep } from './path.js'
import type { Visibility } from './visibility.js'

export const MAX_SORT_KEYS = 8

export interface SortKey {
  readonly steps: readonly PathStep[]
  readonly field: Field
  readonly descending: boolean
  /** The records that are sorted by it; in all others it is null. */
  readonly mask?: Criteria
}

/** The key that a text such as `-company.name` names, or what is wrong with it. */
export function parseSortKey(visibility: Visibility, model: Model, text: string): SortKey | string {
  const descending = text.startsWith('-')
  const sorted = resolveSortKey(visibility, model, text.replace(/^[-+]/, ''))
  return typeof sorted === 'string' ? sorted : { ...sorted, descending }
}

/** A reference is sorted by the name of what it leads to. */
function resolveSortKey(
  visibility: Visibility,
  model: Model,
  name: string,
): Omit<SortKey, 'descending'> | string {
  const path = resolvePath(visibility, model, name)
  if (typeof path === 'string') return path
  const { field, steps } = path
  if (isOverList(path) || field.relation?.isList) return `"${name}" is a list, which has no order`
  if (field.type === 'json') return `"${name}" is json, which has no order`
  if (!field.relation) return { steps, field, ...withMask(visibility.mask(path.model, field)) }
  const step = buildStep(visibility, path.model, field)
  const nameField = visibility.findReadable(step.target, step.target.nameField ?? '')
  if (!nameField)
    return `"${name}" leads to ${step.target.name}, which has no name to sort by: use ${name}.id`
  return { steps: [...steps, step], field: nameField, ...withMask(visibility.mask(step.target, nameField)) }
}

function withMask(mask: Criteria | undefined): Pick<SortKey, 'mask'> {
  return mask ? { mask } : {}
}
