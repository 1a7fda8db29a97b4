// Orders a list of a record by the `orderBy` of its field, then by id.
import type { Field } from '../values/field.js'
import type { Visibility } from './visibility.js'
import { MAX_SORT_KEYS, parseSortKey, type SortKey } from './sort-key.js'

/** Each step is a join in every statement that reads the list, and SQLite joins at most 64 tables. */
const MAX_ORDER_STEPS = 16

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
  return steps > MAX_ORDER_STEPS ? `orderBy goes over more than ${MAX_ORDER_STEPS} relations` : undefined
}

/** Lists the invalid keys of an order with the reason for each. */
export function listInvalidOrderKeys(
  visibility: Visibility,
  field: Field,
): readonly { readonly text: string; readonly fault: string }[] {
  return resolveOrderKeys(visibility, field).flatMap(({ text, key }) =>
    typeof key === 'string' ? [{ text, fault: key }] : [],
  )
}
