// Infers the types of records from definitions: what a service returns, and what a create and an update may send.
import type { FieldTypeName } from '../values/field.js'
import type { Json } from '../values/value.js'
import type { IsUntyped, AnyRecord } from './untyped-definition.js'

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

/** The parts of a definition that the types below need. Checking the whole definition for each type would slow the compiler down. */
export interface AnyDefinition {
  readonly name: string
  readonly fields: object
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
  /** Null stands for no value, as in other fields. */
  json: Exclude<Json, null>
  binary: never
  'many-to-one': never
  'one-to-one': never
  'one-to-many': never
  'many-to-many': never
}

/** Editors show the members of the result instead of the types that it is made of. */
type Flat<T> = { [K in keyof T]: T[K] }

interface TypedField {
  readonly type: FieldTypeName
}

interface RelationField {
  readonly target: string
}

interface ListField {
  readonly type: 'one-to-many' | 'many-to-many'
}

interface BinaryField {
  readonly type: 'binary'
}

interface SecretField {
  readonly secret: true | 'password'
}

type FieldValue<F extends TypedField> = F extends {
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
type OutputValue<F, References> = F extends RelationField
  ? F extends ListField
    ? readonly ReferenceTo<F['target'], References>[]
    : OrNull<F, ReferenceTo<F['target'], References>>
  : F extends TypedField
    ? OrNull<F, FieldValue<F>>
    : never

/** The value of a field in a write. */
type InputValue<F> = F extends RelationField
  ? F extends ListField
    ? readonly RelatedRecordInput[]
    : OrNull<F, RelatedRecordInput>
  : F extends TypedField
    ? OrNull<F, F extends { readonly type: 'decimal' } ? string | number : FieldValue<F>>
    : never

/** An inverse relation is returned only when the request selects it by name, and never written. */
interface InverseField {
  readonly mappedBy: string
  readonly owned?: false
}

/** The service computes or numbers these fields. */
type ServiceField = { readonly computed: unknown } | { readonly sequence: unknown }

/** True if a full record contains the field. */
type IsOutput<F> = F extends BinaryField | SecretField | InverseField ? false : true

/** Tells whether a create needs the field, may have it, or cannot have it. The compiler computes it once for each field. */
type InputPresence<F> = F extends BinaryField | ServiceField | InverseField
  ? 'none'
  : F extends { readonly required: true }
    ? F extends { readonly default: unknown }
      ? 'optional'
      : 'required'
    : 'optional'

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
  readonly [K in keyof Fields as IsOutput<Fields[K]> extends true ? K : never]: OutputValue<
    Fields[K],
    References
  >
}

type RequiredFields<Fields> = {
  readonly [K in keyof Fields as InputPresence<Fields[K]> extends 'required' ? K : never]: InputValue<
    Fields[K]
  >
}

type OptionalFields<Fields> = {
  readonly [K in keyof Fields as InputPresence<Fields[K]> extends 'optional' ? K : never]?: InputValue<
    Fields[K]
  >
}

/**
 * A record of this model in an answer of the service. `References` maps the names of related models to the types of references to them;
 * without it, the name field of a reference has no type.
 */
export type RecordOf<M extends AnyDefinition, References = unknown> = Flat<
  KeyFields & OutputFields<M['fields'], References> & ArchivedField<M> & SystemFields
>

/** The values of a new record of this model. Required fields without a default are required. */
export type CreateOf<M extends AnyDefinition> = Flat<
  RequiredFields<M['fields']> & OptionalFields<M['fields']> & Partial<ArchivedField<M>>
>

/** The values of an update of this model. */
export type UpdateOf<M extends AnyDefinition> = Flat<
  Partial<RequiredFields<M['fields']>> & OptionalFields<M['fields']> & Partial<ArchivedField<M>>
>

/** The input of a create or update of this model. An update gives the version that it is based on. */
export type InputOf<M extends AnyDefinition> = Flat<Partial<KeyFields> & UpdateOf<M>>

/** N if the field of this name can label a record. */
type Label<Fields, N extends keyof Fields> = Fields[N] extends RelationField | BinaryField | SecretField
  ? never
  : N

/** The field that labels a record: the declared one, or else `name` or `code`. */
type NameFieldOf<M extends AnyDefinition> = M extends { readonly nameField: infer N extends string }
  ? N
  : [Label<M['fields'], 'name' & keyof M['fields']>] extends [never]
    ? Label<M['fields'], 'code' & keyof M['fields']>
    : 'name'

/** A related record of this model in an answer. */
export type ReferenceOf<M extends AnyDefinition> = Flat<
  { readonly id: number; readonly $version: number } & {
    readonly [K in NameFieldOf<M>]: K extends keyof M['fields'] ? OutputValue<M['fields'][K], unknown> : never
  }
>

interface LongField {
  readonly type: 'text' | 'json' | 'one-to-many' | 'many-to-many'
}

type ShortFields<Fields> = {
  [
    K in keyof Fields as Fields[K] extends LongField | BinaryField | SecretField | InverseField ? never : K
  ]: unknown
}

/** The fields that a find returns by default, besides `id` and `version`. */
export type ListFieldOf<M extends AnyDefinition> = M extends {
  readonly listFields: readonly (infer N extends string)[]
}
  ? N
  : (keyof ShortFields<M['fields']> | keyof ArchivedField<M>) & string

type Targets<Fields, Kind> = {
  readonly [
    K in keyof Fields as Fields[K] extends RelationField & Kind ? K : never
  ]: Fields[K] extends RelationField ? Fields[K]['target'] : never
}

/** The references of this model with the names of their targets, inverse ones included. */
export type ToOneOf<M extends AnyDefinition> = Flat<
  Targets<M['fields'], { readonly type: 'many-to-one' | 'one-to-one' }> & {
    readonly createdBy: 'verso.auth.User'
    readonly updatedBy: 'verso.auth.User'
  }
>

/** The lists of this model with the names of their targets, inverse ones included. */
export type ToManyOf<M extends AnyDefinition> = Targets<M['fields'], ListField>

/** The names of the fields that hold a file. */
export type FileFieldOf<M extends AnyDefinition> = keyof {
  [K in keyof M['fields'] as M['fields'][K] extends BinaryField ? K : never]: unknown
} &
  string

/** The names of the fields that hold JSON. */
export type JsonFieldOf<M extends AnyDefinition> = keyof {
  [K in keyof M['fields'] as M['fields'][K] extends { readonly type: 'json' } ? K : never]: unknown
} &
  string

/** The names of all fields, with the system fields. */
export type RecordFieldOf<M extends AnyDefinition> =
  IsUntyped<M> extends true
    ? string
    : (keyof M['fields'] | keyof SystemFields | keyof ArchivedField<M>) & string

/** A full record, as `RecordOf`; with fields of any value if only the name of the model is known. */
export type FullRecordOf<M extends AnyDefinition> = IsUntyped<M> extends true ? AnyRecord : RecordOf<M>

/** The values of a new record, as `CreateOf`; any values if only the name of the model is known. */
export type CreateValuesOf<M extends AnyDefinition> =
  IsUntyped<M> extends true ? Readonly<Record<string, unknown>> : CreateOf<M>

/** The values of an update, as `UpdateOf`; any values if only the name of the model is known. */
export type UpdateValuesOf<M extends AnyDefinition> =
  IsUntyped<M> extends true ? Readonly<Record<string, unknown>> : UpdateOf<M>

interface StateReference {
  readonly id: number
}

type StateValue<F> = F extends RelationField
  ? F extends ListField
    ? readonly StateReference[]
    : StateReference | null
  : F extends TypedField
    ? FieldValue<F> | null
    : never

/**
 * The values of a record in a hook. A related record has only its id. A required field may be null, because a hook may run before all values
 * are set.
 */
export type StateOf<M extends AnyDefinition> =
  IsUntyped<M> extends true
    ? Readonly<Record<string, unknown>>
    : Flat<
        {
          readonly [K in keyof M['fields'] as IsOutput<M['fields'][K]> extends true ? K : never]: StateValue<
            M['fields'][K]
          >
        } & ArchivedField<M>
      >
