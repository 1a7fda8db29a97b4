// What people add in TypeScript to a model that is written elsewhere.
import type { FieldDefinition, ModelDefinition } from './define-model.js'
import { DEFAULT_STRING_CHARACTERS } from '../values/field-types.js'

export interface ModelExtension {
  /** The name of the model that is extended. */
  readonly name: string
  /** Each replaces the field of its name, or joins the others. */
  readonly fields?: Readonly<Record<string, FieldDefinition>>
  readonly nameField?: string
  readonly listFields?: readonly string[]
  /** More sets of fields that change only together. */
  readonly together?: readonly (readonly string[])[]
}

// A symbol of the registry: a model file may load its own copy of this module.
const EXTENSION_MARKER = Symbol.for('verso.model-extension')

/**
 * Extends a model of another file: what XML or JSON cannot say, such as a computed field. Its fields replace those of the same name, or join
 * the others. Faults are reported when the service starts.
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
export function extendModel<const Extension extends ModelExtension>(extension: Extension): Extension {
  Object.defineProperty(extension, EXTENSION_MARKER, { value: true })
  return Object.freeze(extension)
}

export function isModelExtension(value: unknown): value is ModelExtension {
  return typeof value === 'object' && value !== null && EXTENSION_MARKER in value
}

/** The definition with what the extensions say, the last one first heard. */
export function applyExtensions(
  definition: ModelDefinition,
  extensions: readonly ModelExtension[],
): ModelDefinition {
  return extensions.reduce<ModelDefinition>(
    (before, { fields, nameField, listFields, together }) => ({
      ...before,
      fields: { ...before.fields, ...keepFieldLengths(before.fields, fields ?? {}) },
      ...(nameField === undefined ? {} : { nameField }),
      ...(listFields === undefined ? {} : { listFields }),
      ...(together === undefined ? {} : { together: [...(before.together ?? []), ...together] }),
    }),
    definition,
  )
}

/** A text is no longer than the one whose place it takes, unless it says so: an index may stand on it. */
function keepFieldLengths(
  before: ModelDefinition['fields'],
  fields: ModelDefinition['fields'],
): ModelDefinition['fields'] {
  const entries = Object.entries(fields).map(([name, field]): [string, FieldDefinition] => {
    const former = Object.hasOwn(before, name) ? before[name] : undefined
    // It may be in its place already.
    const isItself = former === field
    if (isItself || field.type !== 'string' || former?.type !== 'string' || field.length !== undefined)
      return [name, field]
    return [name, { ...field, length: former.length ?? DEFAULT_STRING_CHARACTERS }]
  })
  return Object.fromEntries(entries)
}
