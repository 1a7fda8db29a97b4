// What people write: a model as data, in TypeScript or JSON of the same shape, and the types inferred from it.
import type { FieldTypeName } from '../values/field-types.js'
import type { Json, Value, Values } from '../values/value.js'

type ChoiceDefinition<T> = T | { readonly value: T; readonly title?: string }

interface CommonFieldOptions {
  /** What people see; made from the name if absent. */
  readonly title?: string
  readonly help?: string
  /** Refused when missing or null. */
  readonly required?: boolean
  /** The name this field had before: its column is renamed, nothing is lost. */
  readonly was?: string
  /** False: a copy of a record begins without this value. */
  readonly copy?: boolean
}

interface ComputedOptions {
  /** A function of the other fields, or a template such as `{firstName} {lastName}`. Worked out on every write and stored. */
  readonly computed?: string | ((record: Readonly<Values>) => Value | undefined)
}

interface UniqueOptions {
  /** No two records have the same value; null is no value. */
  readonly unique?: boolean
}

interface RangeOptions<T> {
  readonly min?: T
  readonly max?: T
}

type LengthOption = number | { readonly min?: number; readonly max?: number }

interface TextOptions extends CommonFieldOptions, ComputedOptions {
  /** At most so many characters (code points), or both ends. */
  readonly length?: LengthOption
  /** Write-only; `"password"` is hashed as well. */
  readonly secret?: boolean | 'password'
  readonly default?: string
}

interface SequenceOptions {
  readonly prefix?: string
  readonly suffix?: string
  /** At least so many digits. */
  readonly padding?: number
  /** The first number; 1 if absent. */
  readonly next?: number
}

interface RelationOptions extends CommonFieldOptions {
  /** The name of the model it leads to. */
  readonly target: string
}

interface ListOrderOptions {
  /** Fields of the target that the list is ordered by, such as `['sequence', '-createdOn']`: `-` is descending. By id if absent. */
  readonly orderBy?: readonly string[]
}

export type FieldDefinition =
  | (TextOptions &
      UniqueOptions & {
        readonly type: 'string'
        readonly selection?: readonly ChoiceDefinition<string>[]
        /** The service gives each new record the next number; what a client sends is ignored. */
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
        /** Digits in all, at most 38; 20 if absent. */
        readonly precision?: number
        /** Digits behind the point; 2 if absent. */
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
      /** The field of the target that holds the relation: this one only shows its other side. */
      readonly mappedBy?: string
    })
  | (Omit<RelationOptions, 'required'> &
      ListOrderOptions & {
        readonly type: 'one-to-many'
        /** The many-to-one of the target that leads back here. */
        readonly mappedBy: string
        /** Part of the record: read with it, replaced with it, deleted with it. Else a view of the other side. */
        readonly owned?: boolean
      })
  | (Omit<RelationOptions, 'required'> &
      ListOrderOptions & {
        readonly type: 'many-to-many'
        /** The many-to-many of the target that holds the relation: this one only shows its other side. */
        readonly mappedBy?: string
      })

export interface ModelDefinition {
  /** A dotted name, such as `crm.Contact`. */
  readonly name: string
  readonly title?: string
  readonly fields: Readonly<Record<string, FieldDefinition>>
  /** The field that stands for a record where only one is shown; `name` or `code` if there is such a field. */
  readonly nameField?: string
  /** What a find returns besides `id` and `version`; all fields but long ones if absent. */
  readonly listFields?: readonly string[]
  /** Sets of fields that no two records share. */
  readonly unique?: readonly (readonly string[])[]
  readonly indexes?: readonly (readonly string[])[]
  /** Sets of fields that change only together: where two people changed some of them, nobody's part stands beside the other's. */
  readonly together?: readonly (readonly string[])[]
  /** Records may be archived: they get a field `archived`, and a find leaves them out. */
  readonly archived?: boolean
}

// A symbol of the registry: a model file may load its own copy of this module.
const MODEL_MARKER = Symbol.for('verso.defined-model')

/**
 * Declares a model. Faults are reported when the service starts, all of them at once.
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

/** A neighbour as answered: its id, its version, and its name field under that field's own name. */
export interface Reference {
  readonly id: number
  readonly $version: number
  readonly [nameField: string]: unknown
}

/** `{id}` refers to a record, `{id, version, …}` changes it too, and an object without id makes a new one. */
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

/** The other side of a relation: shown only when it is asked for by name, never written. */
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

/** A record of this model as the service answers it. */
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

/** What may be sent to create or change a record of this model; a change names the version it was made from. */
export type InputOf<M extends ModelDefinition> = {
  readonly id?: number
  readonly version?: number
} & {
  readonly [
    K in keyof ModelFields<M> as unknown extends InputFilter<ModelFields<M>[K]> ? K : never
  ]?: FieldInputValue<ModelFields<M>[K]>
} & Partial<ArchivedField<M>>
