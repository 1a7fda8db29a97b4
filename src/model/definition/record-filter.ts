// The types of filter objects of typed records. `formatFilter` of the client turns the objects into the filter language.
import type { AnyDefinition, RecordFieldOf, StateOf } from './record-types.js'
import type { UntypedDefinition } from './untyped-definition.js'

/** The operators of the filter language with their operands. Several of them must all be true. */
export interface FieldComparison<V> {
  readonly '='?: V | null
  readonly '!='?: V | null
  readonly '<'?: V
  readonly '<='?: V
  readonly '>'?: V
  readonly '>='?: V
  readonly like?: string
  readonly notLike?: string
  readonly in?: readonly (V | null)[]
  readonly notIn?: readonly (V | null)[]
  readonly between?: readonly [from: V, to: V]
  readonly notBetween?: readonly [from: V, to: V]
  readonly isNull?: boolean
  readonly notNull?: boolean
  readonly isEmpty?: boolean
  readonly notEmpty?: boolean
}

/** A value that the field is equal to, null for no value, a list of values, or operators. */
export type FieldCondition<V> = V | null | readonly (V | null)[] | FieldComparison<V>

/** The values that a field is compared with: the id or the name of a related record, or a value of its type. */
type FilterOperand<F, V> = F extends { readonly target: string }
  ? number | string | { readonly id: number }
  : F extends { readonly type: 'decimal' }
    ? string | number
    : F extends { readonly type: 'datetime' }
      ? string | Date
      : NonNullable<V>

type VersionedKey = 'id' | 'version'

/** The condition for a key. A path over relations or into JSON has no type. */
type ConditionOf<M extends AnyDefinition, K> = K extends VersionedKey
  ? FieldCondition<number>
  : K extends keyof StateOf<M> & keyof M['fields']
    ? FieldCondition<FilterOperand<M['fields'][K], StateOf<M>[K]>>
    : unknown

/** A field of the model, or a path over relations such as `customer.name`. */
export type FieldOrPath<M extends AnyDefinition> = RecordFieldOf<M> | `${RecordFieldOf<M>}.${string}`

/**
 * Conditions that must all be true, and groups of conditions: `and`, `or`, `not`. It is not an intersection, because the compiler compares
 * all members of those.
 */
export type RecordConditions<M extends AnyDefinition = UntypedDefinition> = {
  readonly [K in FieldOrPath<M> | VersionedKey | 'and' | 'or' | 'not']?: K extends 'and' | 'or'
    ? readonly RecordFilter<M>[]
    : K extends 'not'
      ? RecordConditions<M>
      : ConditionOf<M, K>
}

/** A condition: an object such as `{ state: 'open', total: { '>': 5 } }`, or a text in the filter language. */
export type RecordFilter<M extends AnyDefinition = UntypedDefinition> = string | RecordConditions<M>
