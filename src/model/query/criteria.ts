// Conditions bound to the fields of a model, as a tree. Searches and permissions use the same type.
import type { Operator } from './condition.js'
import type { Field } from '../values/field.js'
import type { Model } from '../definition/model.js'
import type { Value } from '../values/value.js'

export type Criteria =
  | Comparison
  | { readonly kind: 'and' | 'or'; readonly criteria: readonly Criteria[] }
  | { readonly kind: 'not'; readonly criteria: Criteria }

/**
 * Compares one field. A comparison over a list is true if it is true for at least one member. A relation itself is compared by the `id` at
 * the end of its step; tests for an empty list work the same way.
 */
export interface Comparison {
  readonly kind: 'comparison'
  readonly steps: readonly PathStep[]
  readonly field: Field
  readonly operator: Operator
  /** The operands: none, one, the two bounds of `between`, or those of a list. Only `=` and `!=` may have null, which equals nothing. */
  readonly values: readonly Value[]
  /** Another field of the same record, in the place of a value. Only the checks of a model have it, and no steps and no mask then. */
  readonly otherField?: Field
  /** The records whose value the user may read. In other records it counts as null. */
  readonly mask?: Criteria
}

/** Leads from a record to its related records over one relation. */
export interface PathStep {
  readonly from: Model
  readonly field: Field
  readonly target: Model
  /** The records whose relation the user may read. From other records the step leads nowhere. */
  readonly mask?: Criteria
  /** The related records that the user may see. */
  readonly visible?: Criteria
}

/** An empty `or` is false, so it matches no record. */
export const MATCH_NONE: Criteria = { kind: 'or', criteria: [] }

/** True if a comparison follows more than one relation or a list, so the number of records it reads is unbounded. */
export function spansManyRelations(criteria: Criteria): boolean {
  if (criteria.kind !== 'comparison') return [criteria.criteria].flat().some(spansManyRelations)
  return criteria.steps.length > 1 || criteria.steps.some(({ field }) => field.relation?.isList === true)
}

/** Combines two criteria. An undefined one adds no condition. */
export function andCriteria(one: Criteria | undefined, other: Criteria | undefined): Criteria | undefined {
  return one && other ? { kind: 'and', criteria: [one, other] } : (one ?? other)
}
