// Checks field names and paths of queries, and infers the records that they return. A path is checked step by step as it is written: a
// union of all paths would be too long for an editor.
import type { Reference } from '../../model/definition/record-types.js'
import type { WireRecord } from '../../wire.js'
import type { ReadOf, TypesOf } from './schema.js'

/** The targets of the references of a model, by field. */
export type ToOne<S, N> = TypesOf<S, N> extends { readonly one: infer T } ? T : never
/** The targets of the lists of a model, by field. */
export type ToMany<S, N> = TypesOf<S, N> extends { readonly many: infer T } ? T : never
/** A related record of a model in an answer. */
export type RelatedReference<S, N> = TypesOf<S, N> extends { readonly reference: infer T } ? T : Reference

// The compiler keeps the results of conditional types. It would compute `keyof` again for each path.
/** The names of the fields of a full record. */
export type ReadName<S, N> = TypesOf<S, N> extends { readonly read: infer T } ? keyof T : never
/** The names of the references. */
export type OneName<S, N> = TypesOf<S, N> extends { readonly one: infer T } ? keyof T : never
/** The names of the lists. */
export type ManyName<S, N> = TypesOf<S, N> extends { readonly many: infer T } ? keyof T : never

/** The names of the fields that a query may name, inverse relations included. */
export type FieldName<S, N> =
  TypesOf<S, N> extends { readonly read: infer Read; readonly one: infer One; readonly many: infer Many }
    ? (keyof Read | keyof One | keyof Many) & string
    : never

/** The names of the fields that hold JSON. */
export type JsonName<S, N> = TypesOf<S, N> extends { readonly json: infer T } ? T : never

/** The names of the fields by which records can be sorted. */
export type SortName<S, N> =
  string extends FieldName<S, N> ? string : Exclude<FieldName<S, N>, ManyName<S, N> | JsonName<S, N>>

/** Stands for the fields that an answer has if the query does not select any. */
export type DefaultFields = '*'

/** Any text, without hiding the names beside it from editors. Some programs compute the names of fields. */
type AnyText = string & Record<never, never>

/**
 * P if it is a field, or a path over references to a field; otherwise the names that may be meant. Without a name yet it is never: editors
 * then ask again with the text that is being written.
 */
export type FieldPath<S, N, P extends string> = string extends P
  ? FieldName<S, N> | AnyText
  : P extends DefaultFields
    ? never
    : P extends FieldName<S, N>
      ? P
      : P extends `${infer Head}.${infer Tail}`
        ? Head extends OneName<S, N>
          ? `${Head}.${FieldPath<S, ToOne<S, N>[Head], Tail>}`
          : FieldName<S, N>
        : FieldName<S, N>

/** P if it is a field, or a path over references and lists to a field; otherwise the names that may be meant. */
export type RelatedPath<S, N, P extends string> = string extends P
  ? FieldName<S, N> | AnyText
  : P extends DefaultFields
    ? never
    : P extends FieldName<S, N>
      ? P
      : P extends `${infer Head}.${infer Tail}`
        ? Head extends OneName<S, N>
          ? `${Head}.${RelatedPath<S, ToOne<S, N>[Head], Tail>}`
          : Head extends ManyName<S, N>
            ? `${Head}.${RelatedPath<S, ToMany<S, N>[Head], Tail>}`
            : FieldName<S, N>
        : FieldName<S, N>

/** P if records can be sorted by it, with or without `-`; otherwise the keys that may be meant. */
export type SortPath<S, N, P extends string> = string extends P
  ? SortName<S, N> | `-${SortName<S, N>}` | AnyText
  : P extends `-${infer Path}`
    ? `-${AscendingPath<S, N, Path>}`
    : AscendingPath<S, N, P>

type AscendingPath<S, N, P extends string> =
  P extends SortName<S, N>
    ? P
    : P extends `${infer Head}.${infer Tail}`
      ? Head extends OneName<S, N>
        ? `${Head}.${AscendingPath<S, ToOne<S, N>[Head], Tail>}`
        : SortName<S, N>
      : SortName<S, N>

/** The value of a field in an answer that selects it. */
export type SelectedField<S, N, K> =
  K extends ReadName<S, N>
    ? ReadOf<S, N>[K]
    : K extends OneName<S, N>
      ? RelatedReference<S, ToOne<S, N>[K]> | null
      : K extends ManyName<S, N>
        ? readonly RelatedReference<S, ToMany<S, N>[K]>[]
        : unknown

/** The value at a path: null, too, if a reference on the way may be null. */
type SelectedValue<S, N, P> = P extends `${infer Head}.${infer Tail}`
  ? Head extends OneName<S, N>
    ? SelectedValue<S, ToOne<S, N>[Head], Tail> | Extract<SelectedField<S, N, Head>, null>
    : SelectedField<S, N, P>
  : SelectedField<S, N, P>

/** A record with these fields and paths, besides `id` and `version`. A path is one key, such as `"company.name"`. */
export type Selected<S, N, P> = string extends P
  ? WireRecord
  : { readonly [K in 'id' | 'version' | (P & string)]: SelectedValue<S, N, K> }

type ListFieldName<S, N> = TypesOf<S, N> extends { readonly list: infer T } ? T : never

/** A record of a page: the selected fields, or the list fields of the model. */
export type Found<S, N, P extends string> = [P] extends [never]
  ? Selected<S, N, never>
  : [P] extends [DefaultFields]
    ? Selected<S, N, ListFieldName<S, N>>
    : Selected<S, N, P>
