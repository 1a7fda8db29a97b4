// Declares models as data, in TypeScript or JSON of the same shape.
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
