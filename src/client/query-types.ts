// Checks the field names of queries, and infers the records that they return. A path is checked step by step as it is written,
// because a list of all paths would be too long for an editor.
import type { WireRecord } from '../wire.js'
import type { Reference } from '../model/definition/record-types.js'
import type { ReadOf, TypesOf } from './schema-types.js'

/** The targets of the references of a model, by field. */
type One<S, N> = TypesOf<S, N> extends { readonly one: infer T } ? T : never
/** The targets of the lists of a model, by field. */
type Many<S, N> = TypesOf<S, N> extends { readonly many: infer T } ? T : never
type ReferenceTo<S, N> = TypesOf<S, N> extends { readonly reference: infer T } ? T : Reference

/** The names of the fields that a query may select. */
export type FieldName<S, N> = (keyof ReadOf<S, N> | keyof One<S, N> | keyof Many<S, N>) & string

type JsonFieldName<R> = { [K in keyof R]: object extends R[K] ? K : never }[keyof R]

/** The names of the fields by which records can be sorted. */
export type SortName<S, N> =
  string extends FieldName<S, N>
    ? string
    : Exclude<FieldName<S, N>, keyof Many<S, N> | JsonFieldName<ReadOf<S, N>>>

/** P if it is a path over references to a field; otherwise the names that fit best. */
export type FieldPath<S, N, P extends string> =
  P extends FieldName<S, N>
    ? P
    : P extends `${infer Head}.${infer Tail}`
      ? Head extends keyof One<S, N>
        ? `${Head}.${FieldPath<S, One<S, N>[Head], Tail>}`
        : FieldName<S, N>
      : FieldName<S, N>

/** P if it is a field or a path to sort by, with or without `-`; otherwise the names that fit best. */
export type SortPath<S, N, P extends string> = P extends `-${infer Path}`
  ? `-${AscendingPath<S, N, Path>}`
  : AscendingPath<S, N, P>

type AscendingPath<S, N, P extends string> =
  P extends SortName<S, N>
    ? P
    : P extends `${infer Head}.${infer Tail}`
      ? Head extends keyof One<S, N>
        ? `${Head}.${AscendingPath<S, One<S, N>[Head], Tail>}`
        : SortName<S, N>
      : SortName<S, N>

/** P if it is a path over references and lists to a field; otherwise the names that fit best. */
type ConditionPath<S, N, P extends string> =
  P extends FieldName<S, N>
    ? P
    : P extends `${infer Head}.${infer Tail}`
      ? Head extends keyof One<S, N>
        ? `${Head}.${ConditionPath<S, One<S, N>[Head], Tail>}`
        : Head extends keyof Many<S, N>
          ? `${Head}.${ConditionPath<S, Many<S, N>[Head], Tail>}`
          : FieldName<S, N>
      : FieldName<S, N>

/** The value of a field in an answer that selects it. */
type SelectedField<S, N, K> = K extends keyof ReadOf<S, N>
  ? ReadOf<S, N>[K]
  : K extends keyof One<S, N>
    ? ReferenceTo<S, One<S, N>[K]> | null
    : K extends keyof Many<S, N>
      ? readonly ReferenceTo<S, Many<S, N>[K]>[]
      : unknown

/** The value at a path: null, too, if a reference on the way may be null. */
type SelectedValue<S, N, P> = P extends keyof ReadOf<S, N>
  ? ReadOf<S, N>[P]
  : P extends `${infer Head}.${infer Tail}`
    ? Head extends keyof One<S, N>
      ? SelectedValue<S, One<S, N>[Head], Tail> | Extract<SelectedField<S, N, Head>, null>
      : unknown
    : SelectedField<S, N, P>

/** A record with only these fields, besides `id` and `version`. A path is one key, such as `"company.name"`. */
export type Selected<S, N, P> = string extends P
  ? WireRecord
  : { readonly [K in 'id' | 'version' | (P & string)]: SelectedValue<S, N, K> }

/** Stands for the fields that a find returns by default. */
export type ListFields = '*'

/** A record of a page: the selected fields, or the list fields of the model. */
export type Found<S, N, P extends string> = [P] extends [ListFields]
  ? [P] extends [never]
    ? Selected<S, N, never>
    : Selected<S, N, TypesOf<S, N> extends { readonly list: infer L } ? L : never>
  : Selected<S, N, P>

type Group = 'and' | 'or' | 'not'

/** All keys of a filter, those of the groups inside it included. */
export type FilterKeys<X> = X extends readonly (infer Member)[]
  ? FilterKeys<Member>
  : X extends object
    ? (keyof X & string) | { [K in keyof X & Group]: FilterKeys<X[K]> }[keyof X & Group]
    : never

/** The operand of a condition on a field. */
type Operand<V> = V extends readonly (infer Member)[]
  ? Operand<Member>
  : V extends { readonly id: number }
    ? number | { readonly id: number } | string
    : V

interface Comparison<V> {
  readonly '='?: V
  readonly '!='?: V
  readonly '<'?: V
  readonly '<='?: V
  readonly '>'?: V
  readonly '>='?: V
  readonly like?: string
  readonly notLike?: string
  readonly in?: readonly V[]
  readonly notIn?: readonly V[]
  readonly between?: readonly [from: V, to: V]
  readonly notBetween?: readonly [from: V, to: V]
  readonly isNull?: boolean
  readonly isEmpty?: boolean
}

/** A value to be equal to, null, a list of values to be in, or operators with their operands. */
type Condition<V> = V | null | readonly V[] | Comparison<V>

type ConditionValue<S, N, P> = P extends keyof ReadOf<S, N>
  ? Operand<NonNullable<ReadOf<S, N>[P]>>
  : P extends `${infer Head}.${infer Tail}`
    ? Head extends keyof One<S, N>
      ? ConditionValue<S, One<S, N>[Head], Tail>
      : Head extends keyof Many<S, N>
        ? ConditionValue<S, Many<S, N>[Head], Tail>
        : unknown
    : Operand<SelectedField<S, N, P>>

/** A condition as an object. `P` are the paths that it names. */
export type Filter<S, N, P extends string = never> = {
  readonly [K in FieldName<S, N> | ConditionPaths<S, N, P>]?: Condition<ConditionValue<S, N, K>>
} & {
  readonly and?: readonly Filter<S, N, P>[]
  readonly or?: readonly Filter<S, N, P>[]
  readonly not?: Filter<S, N, P>
}

type ConditionPaths<S, N, P extends string> = P extends Group ? never : ConditionPath<S, N, P>

/** Infers X, the type of the filter as written, and checks it. */
export type CheckedFilter<S, N, X> = [X] extends [never] ? X : Filter<S, N, FilterKeys<X>>
