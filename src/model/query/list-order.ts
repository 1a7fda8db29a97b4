// The order in which a list of a record is shown: `orderBy` of its field, and then the id.
import type { Field } from '../values/field-types.js'
import type { Sight } from './visibility.js'
import { MAX_SORT_KEYS, sortKeyFrom, type SortKey } from './sort-key.js'

/** Each is a join in every statement that shows the list, and SQLite joins no more than 64 tables. */
const MAX_ORDER_STEPS = 16

interface OrderKey {
  /** As people write it: `-createdOn`. */
  readonly text: string
  /** Or what is wrong with it. */
  readonly key: SortKey | string
}

function keysOf(sight: Sight, { relation }: Field): readonly OrderKey[] {
  if (!relation?.orderBy) return []
  const target = sight.target(relation)
  return relation.orderBy.map((text) => ({ text, key: sortKeyFrom(sight, target, text) }))
}

/** A key that somebody may not read is left out for them: nobody finds out by the order of a list. */
export function listOrder(sight: Sight, field: Field): readonly SortKey[] {
  return keysOf(sight, field).flatMap(({ key }) => (typeof key === 'string' ? [] : [key]))
}

/** The keys that somebody may know, as they are written. */
export function shownOrder(sight: Sight, field: Field): readonly string[] {
  return keysOf(sight, field).flatMap(({ text, key }) => (typeof key === 'string' ? [] : [text]))
}

/** What is wrong with an order once all models are known, or undefined. */
export function orderFault(sight: Sight, field: Field): string | undefined {
  const keys = keysOf(sight, field)
  if (keys.length > MAX_SORT_KEYS) return `orderBy must have at most ${MAX_SORT_KEYS} keys`
  const fault = keys.map(({ key }) => key).find((key) => typeof key === 'string')
  if (fault !== undefined) return `orderBy: ${fault}`
  const steps = listOrder(sight, field).reduce((sum, key) => sum + key.steps.length, 0)
  return steps > MAX_ORDER_STEPS ? `orderBy goes over more than ${MAX_ORDER_STEPS} relations` : undefined
}

/** The keys that no model could be ordered by, and why: all of the others fit. */
export function orderFaults(
  sight: Sight,
  field: Field,
): readonly { readonly text: string; readonly fault: string }[] {
  return keysOf(sight, field).flatMap(({ text, key }) =>
    typeof key === 'string' ? [{ text, fault: key }] : [],
  )
}
