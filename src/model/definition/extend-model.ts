// Extends models of other files in TypeScript.
import { ConfigError } from '../../errors.js'
import type { CheckDefinition, ModelDefinition } from './define-model.js'
import type { FieldDefinition } from './field-definition.js'
import type { HooksOf } from './hooks.js'
import type { AnyDefinition } from './record-types.js'
import { DEFAULT_STRING_CHARACTERS } from '../values/field-types.js'
import { isArray } from '../values/value.js'

export interface ModelExtension {
  /** Name of the extended model. */
  readonly name: string
  /** Added fields. A field replaces the existing one of the same name. */
  readonly fields?: Readonly<Record<string, FieldDefinition>>
  readonly nameField?: string
  readonly listFields?: readonly string[]
  /** Added sets of fields that merge as one. */
  readonly mergeGroups?: readonly (readonly string[])[]
  /** Added checks. */
  readonly checks?: readonly CheckDefinition[]
  /** Hooks that run after those of the model and of earlier extensions. */
  readonly hooks?: HooksOf
}

// A registered symbol is the same in every copy of this module that a model file may load.
const EXTENSION_MARKER = Symbol.for('verso.model-extension')

/** Tells the type of an extension from that of a definition. */
export interface MarkedExtension {
  readonly [EXTENSION_MARKER]: true
}

/**
 * Extends a model of another file with options that XML or JSON cannot express, such as a computed function. Fields replace those of the
 * same name, or are added. The service reports errors when it starts.
 *
 * @example
 * export const Member = extendModel({
 *   name: 'org.example.library.db.Member',
 *   fields: {
 *     fullName: { type: 'string', computed: ({ firstName, lastName }) => [firstName, lastName].filter(Boolean).join(' ') },
 *   },
 *   nameField: 'fullName',
 * })
 */
export function extendModel<const Extension extends ModelExtension>(
  extension: Extension,
): Extension & MarkedExtension {
  Object.defineProperty(extension, EXTENSION_MARKER, { value: true })
  return Object.freeze(extension) as Extension & MarkedExtension
}

/**
 * Adds hooks to a model of another file, with the types of its fields. List the result among the models or hooks of `createVerso`, or
 * export it from a model file.
 *
 * @example
 * export const taskRules = defineHooks(Task, {
 *   validate: ({ after }) => (after.title === 'x' ? { title: 'must be longer' } : undefined),
 * })
 */
export function defineHooks<M extends AnyDefinition>(
  model: M,
  hooks: HooksOf<M>,
): ModelExtension & MarkedExtension {
  const { name } = Object(model) as Partial<AnyDefinition>
  if (typeof name !== 'string' || isModelExtension(model))
    throw new ConfigError('Hooks are invalid', [
      `defineHooks takes a model that defineModel returned, and hooks: defineHooks(Task, { validate: … }). For a model of JSON or XML, write extendModel({ name: 'crm.Task', hooks })`,
    ])
  // The types of the fields are known to the author of the hooks only.
  return extendModel({ name, hooks: hooks as HooksOf })
}

export function isModelExtension(value: unknown): value is ModelExtension {
  return typeof value === 'object' && value !== null && EXTENSION_MARKER in value
}

/** Applies the extensions in order; a later one overrides an earlier one. */
export function applyExtensions(
  definition: ModelDefinition,
  extensions: readonly ModelExtension[],
): ModelDefinition {
  return extensions.reduce<ModelDefinition>(
    (before, { fields, nameField, listFields, mergeGroups, checks, hooks }) => ({
      ...before,
      fields: { ...before.fields, ...keepFieldLengths(before.fields, fields ?? {}) },
      ...(nameField === undefined ? {} : { nameField }),
      ...(listFields === undefined ? {} : { listFields }),
      ...(mergeGroups === undefined ? {} : { mergeGroups: [...(before.mergeGroups ?? []), ...mergeGroups] }),
      ...(checks === undefined ? {} : { checks: appendChecks(before.checks, checks) }),
      ...(hooks === undefined ? {} : { hooks: [...(before.hooks ? [before.hooks].flat() : []), hooks] }),
    }),
    definition,
  )
}

/** Returns anything but a list as it is: `checkModel` reports it. */
function appendChecks(before: readonly CheckDefinition[] = [], added: readonly CheckDefinition[]) {
  if (!isArray(before)) return before
  return isArray(added) ? [...before, ...added] : added
}

/** A replaced string keeps its former maximum length unless the extension gives one, because an index may depend on it. */
function keepFieldLengths(
  before: ModelDefinition['fields'],
  fields: ModelDefinition['fields'],
): ModelDefinition['fields'] {
  const entries = Object.entries(fields).map(([name, field]): [string, FieldDefinition] => {
    const former = Object.hasOwn(before, name) ? before[name] : undefined
    // The extension may already be applied.
    const isItself = former === field
    if (isItself || field.type !== 'string' || former?.type !== 'string' || field.length !== undefined)
      return [name, field]
    return [name, { ...field, length: former.length ?? DEFAULT_STRING_CHARACTERS }]
  })
  return Object.fromEntries(entries)
}
