// Sort keys of searches and of lists.
import type { Criteria, PathStep } from './criteria.js'
import type { Field } from '../values/field.js'
import type { Model } from '../definition/model.js'
import { isOverList, resolvePath, buildStep } from './path.js'
import type { Visibility } from './visibility.js'

export const MAX_SORT_KEYS = 8

export interface SortKey {
  readonly steps: readonly PathStep[]
  readonly field: Field
  readonly descending: boolean
  /** The records whose value the user may read. In other records the key counts as null. */
  readonly mask?: Criteria
}

/** Parses a text such as `-company.name`; returns an error message if it is invalid. */
export function parseSortKey(visibility: Visibility, model: Model, text: string): SortKey | string {
  const descending = text.startsWith('-')
  const sorted = resolveSortKey(visibility, model, text.replace(/^[-+]/, ''))
  return typeof sorted === 'string' ? sorted : { ...sorted, descending }
}

/** Sorts a reference by the name field of the related record. */
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
