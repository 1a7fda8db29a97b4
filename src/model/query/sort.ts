// Sort keys of searches, and of lists: a list is ordered by the `orderBy` of its field, then by id.
import type { Criteria, PathStep } from './criteria.js'
import type { Field } from '../values/field.js'
import type { Model } from '../definition/model.js'
import { isOverList, parseFieldNames, resolvePath, buildStep } from './path.js'
import type { Visibility } from './visibility.js'

const MAX_SORT_KEYS = 8
/** Each step is a join in every statement that reads the list, and SQLite joins at most 64 tables. */
const MAX_ORDER_STEPS = 16

export interface SortKey {
  readonly steps: readonly PathStep[]
  readonly field: Field
  readonly descending: boolean
  /** The records whose value the user may read. In other records the key counts as null. */
  readonly mask?: Criteria
}

/** Parses a text such as `-company.name`; returns an error message if it is invalid. */
function parseSortKey(visibility: Visibility, model: Model, text: string): SortKey | string {
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
  if (isOverList(path) || field.relation?.isList)
    return `"${name}" is a list, and records cannot be sorted by a list`
  if (field.type === 'json') return `"${name}" is JSON, and records cannot be sorted by JSON`
  if (!field.relation) return { steps, field, ...withMask(visibility.mask(path.model, field)) }
  const step = buildStep(visibility, path.model, field)
  const nameField = visibility.findReadable(step.target, step.target.nameField ?? '')
  if (!nameField)
    return `"${name}" refers to ${step.target.name}, which has no name field to sort by: use ${name}.id`
  return { steps: [...steps, step], field: nameField, ...withMask(visibility.mask(step.target, nameField)) }
}

function withMask(mask: Criteria | undefined): Pick<SortKey, 'mask'> {
  return mask ? { mask } : {}
}

export function parseSort(
  visibility: Visibility,
  model: Model,
  sortBy: unknown,
  errors: string[],
): SortKey[] {
  const keys = parseFieldNames('sortBy', sortBy, errors)
  if (keys.length > MAX_SORT_KEYS) {
    errors.push(`sortBy must have at most ${MAX_SORT_KEYS} keys`)
    return []
  }
  return keys.flatMap((text) => {
    const key = parseSortKey(visibility, model, text)
    if (typeof key !== 'string') return key
    errors.push(`sortBy: ${key}`)
    return []
  })
}

interface OrderKey {
  /** The key as the definition spells it, such as `-createdOn`. */
  readonly text: string
  /** The parsed key, or an error message. */
  readonly key: SortKey | string
}

function resolveOrderKeys(visibility: Visibility, { relation }: Field): readonly OrderKey[] {
  if (!relation?.orderBy) return []
  const target = visibility.getTarget(relation)
  return relation.orderBy.map((text) => ({ text, key: parseSortKey(visibility, target, text) }))
}

/** Omits keys that the user may not read, so that the order of a list reveals nothing about them. */
export function resolveListOrder(visibility: Visibility, field: Field): readonly SortKey[] {
  return resolveOrderKeys(visibility, field).flatMap(({ key }) => (typeof key === 'string' ? [] : [key]))
}

/** Lists the keys that the user may read, as the definition spells them. */
export function listVisibleOrderKeys(visibility: Visibility, field: Field): readonly string[] {
  return resolveOrderKeys(visibility, field).flatMap(({ text, key }) =>
    typeof key === 'string' ? [] : [text],
  )
}

/** Returns an error message if an order is invalid. Needs all models. */
export function validateListOrder(visibility: Visibility, field: Field): string | undefined {
  const keys = resolveOrderKeys(visibility, field)
  if (keys.length > MAX_SORT_KEYS) return `orderBy must have at most ${MAX_SORT_KEYS} keys`
  const error = keys.map(({ key }) => key).find((key) => typeof key === 'string')
  if (error !== undefined) return `orderBy: ${error}`
  const steps = resolveListOrder(visibility, field).reduce((sum, key) => sum + key.steps.length, 0)
  return steps > MAX_ORDER_STEPS ? `orderBy follows more than ${MAX_ORDER_STEPS} relations` : undefined
}

/** Lists the invalid keys of an order with the reason for each. */
export function listInvalidOrderKeys(
  visibility: Visibility,
  field: Field,
): readonly { readonly text: string; readonly error: string }[] {
  return resolveOrderKeys(visibility, field).flatMap(({ text, key }) =>
    typeof key === 'string' ? [{ text, error: key }] : [],
  )
}
