// Extends models of other files in TypeScript.
import type { FieldDefinition, ModelDefinition } from './define-model.js'
import { DEFAULT_STRING_CHARACTERS } from '../values/field-types.js'

export interface ModelExtension {
  /** Name of the extended model. */
  readonly name: string
  /** Added fields. A field replaces the existing one of the same name. */
  readonly fields?: Readonly<Record<string, FieldDefinition>>
  readonly nameField?: string
  readonly listFields?: readonly string[]
  /** Added sets of fields that merge as one. */
  readonly mergeGroups?: readonly (readonly string[])[]
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

export function isModelExtension(value: unknown): value is ModelExtension {
  return typeof value === 'object' && value !== null && EXTENSION_MARKER in value
}

/** Applies the extensions in order; a later one overrides an earlier one. */
export function applyExtensions(
  definition: ModelDefinition,
  extensions: readonly ModelExtension[],
): ModelDefinition {
  return extensions.reduce<ModelDefinition>(
    (before, { fields, nameField, listFields, mergeGroups }) => ({
      ...before,
      fields: { ...before.fields, ...keepFieldLengths(before.fields, fields ?? {}) },
      ...(nameField === undefined ? {} : { nameField }),
      ...(listFields === undefined ? {} : { listFields }),
      ...(mergeGroups === undefined ? {} : { mergeGroups: [...(before.mergeGroups ?? []), ...mergeGroups] }),
    }),
    definition,
  )
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
