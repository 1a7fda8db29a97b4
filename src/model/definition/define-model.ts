// Declares models as data, in TypeScript or JSON of the same shape, and infers record types from them.
import type { FieldTypeName } from '../values/field.js'
import type { Json, Value, Values } from '../values/value.js'

type ChoiceDefinition<T> = T | { readonly value: T; readonly title?: string }

interface CommonFieldOptions {
  /** The label for people; derived from the name by default. */
  readonly title?: string
  readonly help?: string
  /** Writes without a value, or with null, are rejected. */
  readonly required?: boolean
  /** The former name of this field. The migration renames its column and keeps its data. */
  readonly renamedFrom?: string
  /** False if a copy of a record does not take over this value. */
  readonly copy?: boolean
}

interface ComputedOptions {
  /** A function of the other fields, or a template such as `{firstName} {lastName}`. Computed on every write and stored. */
  readonly computed?: string | ((record: Readonly<Values>) => Value | undefined)
}

interface UniqueOptions {
  /** No two records have the same value. Any number of records may have null. */
  readonly unique?: boolean
}

interface RangeOptions<T> {
  readonly min?: T
  readonly max?: T
}

type LengthOption = number | { readonly min?: number; readonly max?: number }

interface TextOptions extends CommonFieldOptions, ComputedOptions {
  /** The maximum number of characters (code points), or minimum and maximum. */
  readonly length?: LengthOption
  /** Write-only: never returned. `"password"` is stored as a hash. */
  readonly secret?: boolean | 'password'
  readonly default?: string
}

interface SequenceOptions {
  readonly prefix?: string
  readonly suffix?: string
  /** Minimum number of digits; shorter numbers are padded with zeros. */
  readonly padding?: number
  /** The first number; 1 by default. */
  readonly next?: number
}

interface RelationOptions extends CommonFieldOptions {
  /** Name of the related model. */
  readonly target: string
}

interface ListOrderOptions {
  /** Sort keys of the list: fields of the target such as `['sequence', '-createdOn']`, where `-` is descending. By id by default. */
  readonly orderBy?: readonly string[]
}

export type FieldDefinition =
  | (TextOptions &
      UniqueOptions & {
        readonly type: 'string'
        readonly selection?: readonly ChoiceDefinition<string>[]
        /** The service assigns the next number to each new record. Values that a client sends are ignored. */
        readonly sequence?: SequenceOptions
      })
  | (TextOptions & { readonly type: 'text' })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions & {
        readonly type: 'enum'
        readonly selection: readonly ChoiceDefinition<string>[]
        readonly default?: string
      })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions &
      RangeOptions<number> & {
        readonly type: 'integer' | 'long'
        readonly selection?: readonly ChoiceDefinition<number>[]
        readonly default?: number
      })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions &
      RangeOptions<string | number> & {
        readonly type: 'decimal'
        /** Total number of digits, at most 38; 20 by default. */
        readonly precision?: number
        /** Digits after the decimal point; 2 by default. */
        readonly scale?: number
        readonly default?: string | number
      })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions & { readonly type: 'boolean'; readonly default?: boolean })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions &
      RangeOptions<string> & {
        readonly type: 'date' | 'time' | 'datetime'
        /** A value, or `"now"`. */
        readonly default?: string
      })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions & { readonly type: 'uuid'; readonly default?: string })
  | (CommonFieldOptions & ComputedOptions & { readonly type: 'json'; readonly default?: Json })
  | (CommonFieldOptions & { readonly type: 'binary' })
  | (RelationOptions & UniqueOptions & { readonly type: 'many-to-one' })
  | (RelationOptions & {
      readonly type: 'one-to-one'
      /** The target's field that stores the relation. This field is then its inverse and read-only. */
      readonly mappedBy?: string
    })
  | (Omit<RelationOptions, 'required'> &
      ListOrderOptions & {
        readonly type: 'one-to-many'
        /** The target's many-to-one field that points back to this model. */
        readonly mappedBy: string
        /** True if the list is part of the record: read, replaced and deleted with it. Otherwise it is a read-only inverse relation. */
        readonly owned?: boolean
      })
  | (Omit<RelationOptions, 'required'> &
      ListOrderOptions & {
        readonly type: 'many-to-many'
        /** The target's many-to-many field that stores the relation. This field is then its inverse and read-only. */
        readonly mappedBy?: string
      })

export interface ModelDefinition {
  /** A dotted name, such as `crm.Contact`. */
  readonly name: string
  readonly title?: string
  readonly fields: Readonly<Record<string, FieldDefinition>>
  /** The field that labels a record, for example in references to it. By default `name`, or else `code`, if the model has it. */
  readonly nameField?: string
  /** The fields that a search returns besides `id` and `version`. By default all fields except texts, JSON and lists. */
  readonly listFields?: readonly string[]
  /** Each set of fields is unique: no two records have the same combination of values. */
  readonly unique?: readonly (readonly string[])[]
  readonly indexes?: readonly (readonly string[])[]
  /** Sets of fields that merge as one. If two users changed fields of a set at the same time, the merge is a conflict. */
  readonly mergeGroups?: readonly (readonly string[])[]
  /** Adds a field `archived`. Searches leave archived records out. */
  readonly archived?: boolean
}

// A registered symbol is the same in every copy of this module that a model file may load.
const MODEL_MARKER = Symbol.for('verso.defined-model')

/**
 * Declares a model. The service reports all errors of all definitions when it starts.
 *
 * @example
 * export const Task = defineModel({
 *   name: 'todo.Task',
 *   fields: {
 *     title: { type: 'string', required: true },
 *     state: { type: 'enum', selection: ['open', 'done'], default: 'open' },
 *   },
 * })
 * export type Task = RecordOf<typeof Task>
 */
export function defineModel<const Definition extends ModelDefinition>(definition: Definition): Definition {
  Object.defineProperty(definition, MODEL_MARKER, { value: true })
  return deepFreeze(definition)
}

export function isDefinedModel(value: unknown): value is ModelDefinition {
  return typeof value === 'object' && value !== null && MODEL_MARKER in value
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(deepFreeze)
  }
  return value
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
  'many-to-one': Reference
  'one-to-one': Reference
  'one-to-many': readonly Reference[]
  'many-to-many': readonly Reference[]
}

/** A related record in an answer: its id, its version, and its name field under that field's own name. */
export interface Reference {
  readonly id: number
  readonly $version: number
  readonly [nameField: string]: unknown
}

/** `{id}` links a record, `{id, version, …}` also updates it, and an object without an id creates one. */
export interface RelatedRecordInput {
  readonly id?: number
  readonly version?: number
  readonly [field: string]: unknown
}

type FieldValue<F extends FieldDefinition> = F extends {
  readonly selection: readonly (infer C)[]
}
  ? C extends { readonly value: infer V }
    ? V
    : C
  : JsonTypes[F['type']]

interface ListFieldType {
  readonly type: 'one-to-many' | 'many-to-many'
}

type NullableFieldValue<F extends FieldDefinition> = F extends { readonly required: true } | ListFieldType
  ? FieldValue<F>
  : FieldValue<F> | null

/** An inverse relation is returned only when the request selects it by name, and never written. */
type IsInverse<F> = F extends { readonly mappedBy: string }
  ? F extends { readonly owned: true }
    ? false
    : true
  : false

type OutputFilter<F> = F extends { readonly type: 'binary' } | { readonly secret: true | 'password' }
  ? never
  : IsInverse<F> extends true
    ? never
    : unknown

type InputFilter<F> = F extends
  { readonly type: 'binary' } | { readonly computed: unknown } | { readonly sequence: unknown }
  ? never
  : IsInverse<F> extends true
    ? never
    : unknown

type FieldInputValue<F extends FieldDefinition> = F extends { readonly type: 'decimal' }
  ? NullableFieldValue<F> | number
  : F extends ListFieldType
    ? readonly RelatedRecordInput[]
    : F extends { readonly target: string }
      ? F extends { readonly required: true }
        ? RelatedRecordInput
        : RelatedRecordInput | null
      : NullableFieldValue<F>

type ModelFields<M extends ModelDefinition> = M['fields']

export interface UserReference {
  readonly id: number
  readonly $version: number
  readonly name: string | null
}

type ArchivedField<M extends ModelDefinition> = M extends { readonly archived: true }
  ? { readonly archived: boolean | null }
  : unknown

/** A record of this model in an answer of the service. */
export type RecordOf<M extends ModelDefinition> = {
  readonly id: number
  readonly version: number
  readonly createdOn: string
  readonly createdBy: UserReference | null
  readonly updatedOn: string | null
  readonly updatedBy: UserReference | null
} & {
  readonly [
    K in keyof ModelFields<M> as unknown extends OutputFilter<ModelFields<M>[K]> ? K : never
  ]: NullableFieldValue<ModelFields<M>[K]>
} & ArchivedField<M>

/** The input of a create or update of this model. An update gives the version that it is based on. */
export type InputOf<M extends ModelDefinition> = {
  readonly id?: number
  readonly version?: number
} & {
  readonly [
    K in keyof ModelFields<M> as unknown extends InputFilter<ModelFields<M>[K]> ? K : never
  ]?: FieldInputValue<ModelFields<M>[K]>
} & Partial<ArchivedField<M>>
