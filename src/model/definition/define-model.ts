// What people write: a model as data, in TypeScript or JSON of the same shape, and the types inferred from it.
import type { FieldTypeName } from '../values/field-types.js'
import type { Json, Value, Values } from '../values/value.js'

type ChoiceDefinition<T> = T | { readonly value: T; readonly title?: string }

interface AnyField {
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

interface Computable {
  /** A function of the other fields, or a template such as `{firstName} {lastName}`. Worked out on every write and stored. */
  readonly computed?: string | ((record: Readonly<Values>) => Value | undefined)
}

interface Unique {
  /** No two records have the same value; null is no value. */
  readonly unique?: boolean
}

interface Ranged<T> {
  readonly min?: T
  readonly max?: T
}

type Length = number | { readonly min?: number; readonly max?: number }

interface TextOptions extends AnyField, Computable {
  /** At most so many characters (code points), or both ends. */
  readonly length?: Length
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

interface Relating extends AnyField {
  /** The name of the model it leads to. */
  readonly target: string
}

interface Ordered {
  /** Fields of the target that the list is ordered by, such as `['sequence', '-createdOn']`: `-` is descending. By id if absent. */
  readonly orderBy?: readonly string[]
}

export type FieldDefinition =
  | (TextOptions &
      Unique & {
        readonly type: 'string'
        readonly selection?: readonly ChoiceDefinition<string>[]
        /** The service gives each new record the next number; what a client sends is ignored. */
        readonly sequence?: SequenceOptions
      })
  | (TextOptions & { readonly type: 'text' })
  | (AnyField &
      Computable &
      Unique & {
        readonly type: 'enum'
        readonly selection: readonly ChoiceDefinition<string>[]
        readonly default?: string
      })
  | (AnyField &
      Computable &
      Unique &
      Ranged<number> & {
        readonly type: 'integer' | 'long'
        readonly selection?: readonly ChoiceDefinition<number>[]
        readonly default?: number
      })
  | (AnyField &
      Computable &
      Unique &
      Ranged<string | number> & {
        readonly type: 'decimal'
        /** Digits in all, at most 38; 20 if absent. */
        readonly precision?: number
        /** Digits behind the point; 2 if absent. */
        readonly scale?: number
        readonly default?: string | number
      })
  | (AnyField & Computable & Unique & { readonly type: 'boolean'; readonly default?: boolean })
  | (AnyField &
      Computable &
      Unique &
      Ranged<string> & {
        readonly type: 'date' | 'time' | 'datetime'
        /** A value, or `"now"`. */
        readonly default?: string
      })
  | (AnyField & Computable & Unique & { readonly type: 'uuid'; readonly default?: string })
  | (AnyField & Computable & { readonly type: 'json'; readonly default?: Json })
  | (AnyField & { readonly type: 'binary' })
  | (Relating & Unique & { readonly type: 'many-to-one' })
  | (Relating & {
      readonly type: 'one-to-one'
      /** The field of the target that holds the relation: this one only shows its other side. */
      readonly mappedBy?: string
    })
  | (Omit<Relating, 'required'> &
      Ordered & {
        readonly type: 'one-to-many'
        /** The many-to-one of the target that leads back here. */
        readonly mappedBy: string
        /** Part of the record: read with it, replaced with it, deleted with it. Else a view of the other side. */
        readonly owned?: boolean
      })
  | (Omit<Relating, 'required'> &
      Ordered & {
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
const DEFINED = Symbol.for('verso.defined-model')

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
  Object.defineProperty(definition, DEFINED, { value: true })
  return freeze(definition)
}

export function isDefinedModel(value: unknown): value is ModelDefinition {
  return typeof value === 'object' && value !== null && DEFINED in value
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(freeze)
  }
  return value
}

interface JsonOf extends Record<FieldTypeName, unknown> {
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
export interface NeighbourInput {
  readonly id?: number
  readonly version?: number
  readonly [field: string]: unknown
}

type ValueOf<F extends FieldDefinition> = F extends {
  readonly selection: readonly (infer C)[]
}
  ? C extends { readonly value: infer V }
    ? V
    : C
  : JsonOf[F['type']]

interface List {
  readonly type: 'one-to-many' | 'many-to-many'
}

type Nullable<F extends FieldDefinition> = F extends { readonly required: true } | List
  ? ValueOf<F>
  : ValueOf<F> | null

/** The other side of a relation: shown only when it is asked for by name, never written. */
type IsView<F> = F extends { readonly mappedBy: string }
  ? F extends { readonly owned: true }
    ? false
    : true
  : false

type Shown<F> = F extends { readonly type: 'binary' } | { readonly secret: true | 'password' }
  ? never
  : IsView<F> extends true
    ? never
    : unknown

type Sent<F> = F extends
  { readonly type: 'binary' } | { readonly computed: unknown } | { readonly sequence: unknown }
  ? never
  : IsView<F> extends true
    ? never
    : unknown

type InputValue<F extends FieldDefinition> = F extends { readonly type: 'decimal' }
  ? Nullable<F> | number
  : F extends List
    ? readonly NeighbourInput[]
    : F extends { readonly target: string }
      ? F extends { readonly required: true }
        ? NeighbourInput
        : NeighbourInput | null
      : Nullable<F>

type FieldsOf<M extends ModelDefinition> = M['fields']

export interface UserReference {
  readonly id: number
  readonly $version: number
  readonly name: string | null
}

type Archived<M extends ModelDefinition> = M extends { readonly archived: true }
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
  readonly [K in keyof FieldsOf<M> as unknown extends Shown<FieldsOf<M>[K]> ? K : never]: Nullable<
    FieldsOf<M>[K]
  >
} & Archived<M>

/** What may be sent to create or change a record of this model; a change names the version it was made from. */
export type InputOf<M extends ModelDefinition> = {
  readonly id?: number
  readonly version?: number
} & {
  readonly [K in keyof FieldsOf<M> as unknown extends Sent<FieldsOf<M>[K]> ? K : never]?: InputValue<
    FieldsOf<M>[K]
  >
} & Partial<Archived<M>>
