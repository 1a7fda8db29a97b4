// Checks filter objects. The client turns them into the filter language.
import type {
  FieldName,
  JsonName,
  ManyName,
  OneName,
  ReadName,
  RelatedPath,
  SelectedField,
  ToMany,
  ToOne,
} from './path.js'
import type { FieldCondition } from '../../model/definition/record-filter.js'
import type { ReadOf, TypesOf, UpdateValues } from './schema.js'

type GroupName = 'and' | 'or' | 'not'

/** All keys of a filter and of the groups inside it. `Depth` ends the recursion of types that contain themselves. */
type FilterKeys<X, Depth extends readonly unknown[] = []> = Depth['length'] extends 16
  ? never
  : X extends readonly (infer Member)[]
    ? FilterKeys<Member, [...Depth, unknown]>
    : X extends object
      ? Extract<keyof X, string> | FilterKeys<X[keyof X & GroupName], [...Depth, unknown]>
      : never

/** The paths among the keys of a filter, and for a misspelled one the names that may be meant. */
type FilterPaths<S, N, Keys extends string> = Keys extends GroupName ? never : RelatedPath<S, N, Keys>

interface RelatedRecord {
  readonly $version: number
}

/** The values that a field is compared with: the id or the name of a related record, or a value of its type. */
type Operand<V> = V extends RelatedRecord | readonly RelatedRecord[]
  ? number | string | { readonly id: number }
  : V

type UpdateName<S, N> = TypesOf<S, N> extends { readonly update: infer T } ? keyof T : never

/** Decimals are texts in records, but a client may write them as numbers. */
type NumberOfDecimal<S, N, P> = P extends UpdateName<S, N> ? Extract<UpdateValues<S, N>[P], number> : never

type OperandAt<S, N, P> =
  P extends JsonName<S, N>
    ? null
    : P extends ReadName<S, N>
      ? Operand<NonNullable<ReadOf<S, N>[P]>> | NumberOfDecimal<S, N, P>
      : P extends `${infer Head}.${infer Tail}`
        ? Head extends OneName<S, N>
          ? OperandAt<S, ToOne<S, N>[Head], Tail>
          : Head extends ManyName<S, N>
            ? OperandAt<S, ToMany<S, N>[Head], Tail>
            : unknown
        : Operand<NonNullable<SelectedField<S, N, P>>>

/**
 * Conditions that must all be true, and groups of conditions: `and`, `or`, `not`. `Keys` are the paths over relations that the filter names.
 * It is neither an intersection nor a union, because the compiler compares all members of those.
 */
export type Filter<S, N, Keys extends string = never> = {
  readonly [P in FieldName<S, N> | FilterPaths<S, N, Keys> | GroupName]?: P extends 'and' | 'or'
    ? readonly Filter<S, N, Keys>[]
    : P extends 'not'
      ? Filter<S, N, Keys>
      : FieldCondition<OperandAt<S, N, P>>
}

/** Infers X, the type of a filter as it is written, and checks its keys. */
export type CheckedFilter<S, N, X> = [X] extends [never] ? X : Filter<S, N, NoInfer<FilterKeys<X>>>
