// Resolves dotted paths over relations, such as `company.country.name`.
import { andCriteria, type PathStep } from './criteria.js'
import { FIELD_DEFAULTS, type Field } from '../values/field.js'
import type { Model } from '../definition/model.js'
import type { Visibility } from './visibility.js'
import { didYouMean, shortenForMessage } from '../values/did-you-mean.js'

export interface Path {
  readonly steps: readonly PathStep[]
  /** The model at the end of the steps, which has the field. */
  readonly model: Model
  readonly field: Field
}

const MAX_PATH_STEPS = 8
export const MAX_SELECTED_FIELDS = 500

const KEY_FIELD = { ...FIELD_DEFAULTS, type: 'long', required: true, isSystem: true, copied: false } as const
export const ID_FIELD: Field = { ...KEY_FIELD, name: 'id', title: 'Id' }
export const VERSION_FIELD: Field = { ...KEY_FIELD, name: 'version', title: 'Version' }
/** Every reader of a record gets these. */
export const KEY_FIELD_NAMES: readonly string[] = [ID_FIELD.name, VERSION_FIELD.name]

/** Finds a field that a request may name, including `id` and `version`. */
export function findField(visibility: Visibility, model: Model, name: string): Field | undefined {
  if (name === 'id') return ID_FIELD
  if (name === 'version') return VERSION_FIELD
  return visibility.findReadable(model, name)
}

/** Returns the path, or an error message. */
export function resolvePath(visibility: Visibility, model: Model, text: string): Path | string {
  const names = text.split('.')
  if (names.length > MAX_PATH_STEPS + 1)
    return `"${shortenForMessage(text)}" follows more than ${MAX_PATH_STEPS} relations`
  const steps: PathStep[] = []
  let current = model
  for (const [index, name] of names.entries()) {
    const field = findField(visibility, current, name)
    if (!field) return describeUnknownField(visibility, current, name)
    if (index === names.length - 1) return { steps, model: current, field }
    if (!field.relation) return `${current.name}.${name} is not a relation, so no other field can follow it`
    const step = buildStep(visibility, current, field)
    steps.push(step)
    current = step.target
  }
  return 'a path must name at least one field'
}

function describeUnknownField(visibility: Visibility, model: Model, name: string): string {
  const known = ['id', 'version', ...model.fields.keys()].filter((each) => findField(visibility, model, each))
  return `${model.name} has no field "${shortenForMessage(name)}"${didYouMean(name, known)}`
}

export function isOverList({ steps }: Path): boolean {
  return steps.some((step) => step.field.relation?.isList)
}

export function buildStep(visibility: Visibility, from: Model, field: Field): PathStep {
  if (!field.relation) throw new Error(`${field.name} is not a relation`)
  const target = visibility.getTarget(field.relation)
  const mask = visibility.mask(from, field)
  // An inverse relation reveals the values of the target's field that stores it, so the mask of that field applies, too.
  const holder = target.fields.get(field.relation.mappedBy ?? '')
  const visible = andCriteria(visibility.visibleRecords(target), holder && visibility.mask(target, holder))
  return { from, field, target, ...(mask ? { mask } : {}), ...(visible ? { visible } : {}) }
}

/** Reads a list of field names; limits its length and that of each path. */
export function parseFieldNames(what: string, input: unknown, errors: string[]): string[] {
  if (!Array.isArray(input) || !input.every((name) => typeof name === 'string')) {
    errors.push(`${what} must be a list of field names`)
    return []
  }
  if (input.length > MAX_SELECTED_FIELDS) {
    errors.push(`${what} must name at most ${MAX_SELECTED_FIELDS} fields`)
    return []
  }
  const long = input.find((name) => name.split('.').length > MAX_PATH_STEPS + 1)
  if (long === undefined) return input
  errors.push(`${what}: "${shortenForMessage(long)}" follows more than ${MAX_PATH_STEPS} relations`)
  return []
}
