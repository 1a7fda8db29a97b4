// Infers the types of records from definitions: what a service returns, and what a create and an update may send.
import type { FieldTypeName } from '../values/field.js'
import type { Json } from '../values/value.js'
import type { FieldDefinition, ModelDefinition } from './define-model.js'

/** A related record in an answer: its id, its version, and its name field under that field's own name. */
export interface Reference {
  readonly id: number
  readonly $version: number
  readonly [nameField: string]: unknown
}

export interface UserReference {
  readonly id: number
  readonly $version: number
  readonly name: string | null
}

/** `{id}` links a record, `{id, version, …}` also updates it, and an object without an id creates one. */
export interface RelatedRecordInput {
  readonly id?: number
  readonly version?: number
  readonly [field: string]: unknown
}

interface JsonTypes extends Record<FieldTypeName, unknown> {
  string: string
  text: string
  integer: number
  long: number
  decimal: string
  boolean: boolean
  date: string
  time: string
  datetime: string
  uuid: string
  enum: string
  json: Json
  binary: never
  'many-to-one': never
  'one-to-one': never
  'one-to-many': never
  'many-to-many': never
}

/** Editors show the members of the result instead of the types that it is made of. */
type Flat<T> = { [K in keyof T]: T[K] }

interface Relation {
  readonly target: string
}

interface RelationList {
  readonly type: 'one-to-many' | 'many-to-many'
}

interface BinaryField {
  readonly type: 'binary'
}

interface Secret {
  readonly secret: true | 'password'
}

type FieldValue<F extends FieldDefinition> = F extends {
  readonly selection: readonly (infer C)[]
}
  ? C extends { readonly value: infer V }
    ? V
    : C
  : JsonTypes[F['type']]

type OrNull<F, V> = F extends { readonly required: true } ? V : V | null

/** The type of a reference to a model: that of the map, or a general one. */
type ReferenceTo<Target, References> = Target extends keyof References ? References[Target] : Reference

/** The value of a field in an answer. */
type OutputValue<F, References> = F extends Relation
  ? F extends RelationList
    ? readonly ReferenceTo<F['target'], References>[]
    : OrNull<F, ReferenceTo<F['target'], References>>
  : F extends FieldDefinition
    ? OrNull<F, FieldValue<F>>
    : never

/** The value of a field in a write. */
type InputValue<F> = F extends Relation
  ? F extends RelationList
    ? readonly RelatedRecordInput[]
    : OrNull<F, RelatedRecordInput>
  : F extends FieldDefinition
    ? OrNull<F, F extends { readonly type: 'decimal' } ? string | number : FieldValue<F>>
    : never

/** An inverse relation is returned only when the request selects it by name, and never written. */
type IsInverse<F> = F extends { readonly mappedBy: string }
  ? F extends { readonly owned: true }
    ? false
    : true
  : false

/** K if a full record contains the field. */
type OutputKey<K, F> = F extends BinaryField | Secret ? never : IsInverse<F> extends true ? never : K

/** K if a client may send the field. */
type InputKey<K, F> = F extends BinaryField | { readonly computed: unknown } | { readonly sequence: unknown }
  ? never
  : IsInverse<F> extends true
    ? never
    : K

/** K if a create must have the field. */
type RequiredKey<K, F> = F extends { readonly required: true }
  ? F extends { readonly default: unknown }
    ? never
    : InputKey<K, F>
  : never

interface KeyFields {
  readonly id: number
  readonly version: number
}

interface SystemFields {
  readonly createdOn: string
  readonly createdBy: UserReference | null
  readonly updatedOn: string | null
  readonly updatedBy: UserReference | null
}

type ArchivedField<M> = M extends { readonly archived: true }
  ? { readonly archived: boolean | null }
  : unknown

type OutputFields<Fields, References> = {
  readonly [K in keyof Fields as OutputKey<K, Fields[K]>]: OutputValue<Fields[K], References>
}

/**
 * A record of this model in an answer of the service. `References` maps the names of related models to the types of
 * references to them; without it, the name field of a reference has no type.
 */
export type RecordOf<M extends ModelDefinition, References = unknown> = Flat<
  KeyFields & OutputFields<M['fields'], References> & ArchivedField<M> & SystemFields
>

/** The values of an update of this model. */
export type UpdateOf<M extends ModelDefinition> = Flat<
  {
    readonly [K in keyof M['fields'] as InputKey<K, M['fields'][K]>]?: InputValue<M['fields'][K]>
  } & Partial<ArchivedField<M>>
>

/** The values of a new record of this model: required are the required fields without a default. */
export type CreateOf<M extends ModelDefinition> = Flat<
  {
    readonly [K in keyof M['fields'] as RequiredKey<K, M['fields'][K]>]: InputValue<M['fields'][K]>
  } & Omit<UpdateOf<M>, keyof M['fields'] & RequiredNames<M['fields']>>
>

type RequiredNames<Fields> = { [K in keyof Fields]: RequiredKey<K, Fields[K]> }[keyof Fields]

/** The input of a create or update of this model. An update gives the version that it is based on. */
export type InputOf<M extends ModelDefinition> = Flat<Partial<KeyFields> & UpdateOf<M>>

type CanBeNameField<F> = F extends Relation | BinaryField | Secret ? false : true

/** The field that labels a record: the declared one, or else `name` or `code`. */
export type NameFieldOf<M extends ModelDefinition> = M extends { readonly nameField: infer N extends string }
  ? N
  : M['fields'] extends { readonly name: infer F }
    ? CanBeNameField<F> extends true
      ? 'name'
      : CodeOf<M['fields']>
    : CodeOf<M['fields']>

type CodeOf<Fields> = Fields extends { readonly code: infer F }
  ? CanBeNameField<F> extends true
    ? 'code'
    : never
  : never

/** A related record of this model in an answer. */
export type ReferenceOf<M extends ModelDefinition> = Flat<
  { readonly id: number; readonly $version: number } & {
    readonly [K in NameFieldOf<M>]: K extends keyof M['fields'] ? OutputValue<M['fields'][K], unknown> : never
  }
>

interface LongField {
  readonly type: 'text' | 'json' | 'one-to-many' | 'many-to-many'
}

/** The fields that a find returns by default, besides `id` and `version`. */
export type ListFieldOf<M extends ModelDefinition> = M extends {
  readonly listFields: readonly (infer N extends string)[]
}
  ? N
  : | (keyof {
        [K in keyof M['fields'] as M['fields'][K] extends LongField ? never : OutputKey<K, M['fields'][K]>]: 1
      } &
        string)
    | (M extends { readonly archived: true } ? 'archived' : never)

/** The references of this model with the names of their targets, inverse ones included. */
export type ToOneOf<M extends ModelDefinition> = {
  readonly [
    K in keyof M['fields'] as M['fields'][K] extends Relation
      ? M['fields'][K] extends RelationList
        ? never
        : K
      : never
  ]: M['fields'][K] extends Relation ? M['fields'][K]['target'] : never
} & { readonly createdBy: 'verso.auth.User'; readonly updatedBy: 'verso.auth.User' }

/** The lists of this model with the names of their targets, inverse ones included. */
export type ToManyOf<M extends ModelDefinition> = {
  readonly [
    K in keyof M['fields'] as M['fields'][K] extends RelationList ? K : never
  ]: M['fields'][K] extends Relation ? M['fields'][K]['target'] : never
}

/** The names of the fields that hold a file. */
export type FileFieldOf<M extends ModelDefinition> = keyof {
  [K in keyof M['fields'] as M['fields'][K] extends BinaryField ? K : never]: 1
} &
  string
