// What is asked of records, as a tree: conditions that are bound to a model, of searches and of permissions alike.
import type { Operator } from './condition.js'
import type { Field } from '../values/field-types.js'
import type { Model } from '../definition/model.js'
import type { Value } from '../values/value.js'

export type Criteria =
  | Comparison
  | { readonly kind: 'and' | 'or'; readonly criteria: readonly Criteria[] }
  | { readonly kind: 'not'; readonly criteria: Criteria }

/**
 * A question to one field. Over a list it holds where it holds for at least one member. A relation itself is compared as the `id`
 * at the end of its step; so is asked whether a list is empty.
 */
export interface Comparison {
  readonly kind: 'comparison'
  readonly steps: readonly PathStep[]
  readonly field: Field
  readonly operator: Operator
  /** None, one, the two ends of between, or those of a list. Only `=` and its like may have null, which equals nothing. */
  readonly values: readonly Value[]
  /** Where the field may be looked at; elsewhere it is null. */
  readonly mask?: Criteria
}

/** From a record to its neighbour, or neighbours. */
export interface PathStep {
  readonly from: Model
  readonly field: Field
  readonly target: Model
  /** The records that it may start from; from all others it leads nowhere. */
  readonly mask?: Criteria
  /** The neighbours that it may lead to. */
  readonly seen?: Criteria
}

/** An empty set means nothing, never everything. */
export const MATCH_NONE: Criteria = { kind: 'or', criteria: [] }

/** Whether it looks at more than one neighbour of a record: how many there are, nobody knows. */
export function spansManyRelations(criteria: Criteria): boolean {
  if (criteria.kind !== 'comparison') return [criteria.criteria].flat().some(spansManyRelations)
  return criteria.steps.length > 1 || criteria.steps.some(({ field }) => field.relation?.isList === true)
}

/** Both, where either may be missing, which says nothing. */
export function andCriteria(one: Criteria | undefined, other: Criteria | undefined): Criteria | undefined {
  return one && other ? { kind: 'and', criteria: [one, other] } : (one ?? other)
}
