// Declares models as data, in TypeScript or JSON of the same shape.
import type { FieldDefinition } from './field-definition.js'
import type { HooksOf } from './hooks.js'

/** A rule about the fields of one record. */
export interface CheckDefinition {
  /**
   * A condition in the language of filters, over fields of the record itself, such as `end >= start`. A record breaks the rule only if the
   * condition is false: a comparison with a missing value is not.
   */
  readonly condition: string
  /** Continues a sentence that begins with the name of the field, such as `must not be before the start`. */
  readonly message: string
  /** The field that the error is about. By default the first one of the condition. */
  readonly field?: string
}

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
  /** Conditions that every record must fulfil. */
  readonly checks?: readonly CheckDefinition[]
  /** Adds a field `archived`. Searches leave archived records out. */
  readonly archived?: boolean
  /** Functions that run when a record is written. `defineModel` gives them the types of the fields. Extensions make it a list. */
  readonly hooks?: object | readonly object[]
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
export function defineModel<
  const Definition extends ModelDefinition,
  // The compiler infers the fields before the parameters of the hooks, which depend on them.
  const Fields extends ModelDefinition['fields'],
>(
  definition: Definition & {
    readonly fields: Fields
    readonly hooks?: HooksOf<{ readonly name: string; readonly fields: Fields }>
  },
): Definition {
  Object.defineProperty(definition, MODEL_MARKER, { value: true })
  return deepFreeze(definition)
}

export function isDefinedModel(value: unknown): value is ModelDefinition {
  return typeof value === 'object' && value !== null && MODEL_MARKER in value
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(deepFreeze)
  }
  return value
}
