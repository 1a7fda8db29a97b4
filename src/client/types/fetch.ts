// Infers the record that a fetch returns: related records are objects inside it.
import type { WireRecord } from '../../wire.js'
import type {
  DefaultFields,
  FieldName,
  ManyName,
  OneName,
  ReadName,
  RelatedReference,
  RelatedPath,
  SelectedField,
  ToMany,
  ToOne,
} from './path.js'

type RelationName<S, N> = (OneName<S, N> | ManyName<S, N>) & string

type TargetOf<S, N, R> =
  R extends OneName<S, N> ? ToOne<S, N>[R] : R extends ManyName<S, N> ? ToMany<S, N>[R] : never

type Head<P> = P extends `${infer First}.${string}` ? First : P
/** The rest of the paths that begin with the relation R. */
type Tail<P, R> = P extends `${infer First}.${infer Rest}` ? (First extends R ? Rest : never) : never

/** Names that a related record has anyway. */
type KeyName = 'id' | 'version'

/** Infers R, the selection of related records as it is written, and checks its names. */
export type CheckedRelated<S, N, R> = [R] extends [never]
  ? R
  : string extends RelationName<S, N>
    ? { readonly [relation: string]: readonly string[] }
    : { readonly [K in RelationName<S, N>]?: readonly RelatedPath<S, TargetOf<S, N, K>, NamesOf<R, K>>[] }

type NamesOf<R, K> = K extends keyof R
  ? R[K] extends readonly (infer P extends string)[]
    ? P
    : never
  : never

type FetchedFields<S, N, P> = {
  readonly [K in Exclude<Head<P>, KeyName> & string]: FetchedField<S, N, K, Tail<P, K>>
}

type FetchedField<S, N, K, P> =
  K extends RelationName<S, N>
    ? Related<S, N, K, RelatedReference<S, TargetOf<S, N, K>> & FetchedFields<S, TargetOf<S, N, K>, P>>
    : SelectedField<S, N, K>

/** One related record or a list of them. */
type Related<S, N, K, T> = K extends ManyName<S, N> ? readonly T[] : T | Extract<SelectedField<S, N, K>, null>

/** A related record that the client can change and send back: it has a `version`. */
type Editable<S, N, K, P> = { readonly id: number; readonly version: number } & FetchedFields<
  S,
  TargetOf<S, N, K>,
  P
>

type SelectedRelated<S, N, P, R> = {
  readonly [K in keyof R & RelationName<S, N>]: Related<
    S,
    N,
    K,
    Editable<S, N, K, NamesOf<R, K>> &
      (K extends Head<P>
        ? RelatedReference<S, TargetOf<S, N, K>> & FetchedFields<S, TargetOf<S, N, K>, Tail<P, K>>
        : unknown)
  >
}

type ArchivedHint<S, N> =
  'archived' extends FieldName<S, N> ? { readonly archived?: boolean | null } : unknown

type AllNames<S, N, P> = [P] extends [DefaultFields] ? ([P] extends [never] ? never : ReadName<S, N>) : P

type FetchedParts<S, N, P, R> = { readonly id: number; readonly version: number } & FetchedFields<
  S,
  N,
  Exclude<P, keyof R | `${keyof R & string}.${string}`>
> &
  SelectedRelated<S, N, P, R> &
  ArchivedHint<S, N>

type Merged<T> = { [K in keyof T]: T[K] }

/** A fetched record with the selected fields and related records. */
export type Fetched<S, N, P extends string, R> = string extends P
  ? WireRecord
  : string extends ReadName<S, N>
    ? WireRecord
    : Merged<FetchedParts<S, N, AllNames<S, N, P>, R>>
