// The order in which a list of a record is shown: `orderBy` of its field, and then the id.
import type { Field } from '../values/field-types.js'
import type { Visibility } from './visibility.js'
import { MAX_SORT_KEYS, parseSortKey, type SortKey } from './sort-key.js'

/** Each is a join in every statement that shows the list, and SQLite joins no more than 64 tables. */
const MAX_ORDER_STEPS = 16

interface OrderKey {
  /** As people write it: `-createdOn`. */
  readonly text: string
  /** Or what is wrong with it. */
  readonly key: SortKey | string
}

function resolveOrderKeys(visibility: Visibility, { relation }: Field): readonly OrderKey[] {
  if (!relation?.orderBy) return []
  const target = visibility.getTarget(relation)
  return relation.orderBy.map((text) => ({ text, key: parseSortKey(visibility, target, text) }))
}

/** A key that somebody may not read is left out for them: nobody finds out by the order of a list. */
export function resolveListOrder(visibility: Visibility, field: Field): readonly SortKey[] {
  return resolveOrderKeys(visibility, field).flatMap(({ key }) => (typeof key === 'string' ? [] : [key]))
}

/** The keys that somebody may know, as they are written. */
export function listVisibleOrderKeys(visibility: Visibility, field: Field): readonly string[] {
  return resolveOrderKeys(visibility, field).flatMap(({ text, key }) =>
    typeof key === 'string' ? [] : [text],
  )
}

/** What is wrong with an order once all models are known, or undefined. */
export function validateListOrder(visibility: Visibility, field: Field): string | undefined {
  const keys = resolveOrderKeys(visibility, field)
  if (keys.length > MAX_SORT_KEYS) return `orderBy must have at most ${MAX_SORT_KEYS} keys`
  const error = keys.map(({ key }) => key).find((key) => typeof key === 'string')
  if (error !== undefined) return `orderBy: ${error}`
  const steps = resolveListOrder(visibility, field).reduce((sum, key) => sum + key.steps.length, 0)
  return steps > MAX_ORDER_STEPS ? `orderBy goes over more than ${MAX_ORDER_STEPS} relations` : undefined
}

/** The keys that no model could be ordered by, and why: all of the others fit. */
export function listInvalidOrderKeys(
  visibility: Visibility,
  field: Field,
): readonly { readonly text: string; readonly fault: string }[] {
  return resolveOrderKeys(visibility, field).flatMap(({ text, key }) =>
    typeof key === 'string' ? [{ text, fault: key }] : [],
  )
}
