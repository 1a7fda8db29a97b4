// Dotted paths over relations: `company.country.name`.
import { both, type Step } from './criteria.js'
import { BLANK, type Field } from '../values/field-types.js'
import type { Model } from '../definition/model.js'
import type { Sight } from './visibility.js'
import { didYouMean } from '../values/did-you-mean.js'

export interface Path {
  readonly steps: readonly Step[]
  /** The model that the field belongs to, at the end of the steps. */
  readonly model: Model
  readonly field: Field
}

export const MAX_STEPS = 8

const key = { ...BLANK, type: 'long', required: true, kept: true, copied: false } as const
export const ID: Field = { ...key, name: 'id', title: 'Id' }
export const VERSION: Field = { ...key, name: 'version', title: 'Version' }

/** What a client may name in this model. */
export function fieldOf(sight: Sight, model: Model, name: string): Field | undefined {
  if (name === 'id') return ID
  if (name === 'version') return VERSION
  return sight.readable(model, name)
}

/** The path, or what is wrong with it. */
export function pathOf(sight: Sight, model: Model, text: string): Path | string {
  const names = text.split('.')
  if (names.length > MAX_STEPS + 1) return `"${text.slice(0, 100)}" has more than ${MAX_STEPS} steps`
  const steps: Step[] = []
  let current = model
  for (const [index, name] of names.entries()) {
    const field = fieldOf(sight, current, name)
    if (!field) return unknownField(sight, current, name)
    if (index === names.length - 1) return { steps, model: current, field }
    if (!field.relation) return `${current.name}.${name} is no relation: nothing can follow it`
    const step = stepOf(sight, current, field)
    steps.push(step)
    current = step.target
  }
  return 'a path names at least one field'
}

function unknownField(sight: Sight, model: Model, name: string): string {
  const known = ['id', 'version', ...model.fields.keys()].filter((each) => fieldOf(sight, model, each))
  return `${model.name} has no field "${name.slice(0, 100)}"${didYouMean(name, known)}`
}

export function isOverList({ steps }: Path): boolean {
  return steps.some((step) => step.field.relation?.isList)
}

export function stepOf(sight: Sight, from: Model, field: Field): Step {
  if (!field.relation) throw new Error(`${field.name} is no relation`)
  const target = sight.target(field.relation)
  const mask = sight.mask(from, field)
  // Seen from the other side, a relation tells what the field holds that holds it.
  const holder = target.fields.get(field.relation.mappedBy ?? '')
  const seen = both(sight.seen(target), holder && sight.mask(target, holder))
  return { from, field, target, ...(mask ? { mask } : {}), ...(seen ? { seen } : {}) }
}
