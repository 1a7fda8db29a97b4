// Dotted paths over relations: `company.country.name`.
import type { Catalog } from './catalog.js'
import { BLANK, type Field } from './field.js'
import { isReadable, type Model } from './model.js'
import { didYouMean } from './similar.js'

/** From a record to its neighbour, or neighbours. */
export interface Step {
  readonly from: Model
  readonly field: Field
  readonly target: Model
}

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

/** What a client may name in this model; of a model that is not served, only what its compact form shows. */
export function fieldOf(catalog: Catalog, model: Model, name: string): Field | undefined {
  if (name === 'id') return ID
  if (name === 'version') return VERSION
  if (!catalog.isServed(model) && name !== model.nameField) return undefined
  const field = model.fields.get(name)
  return field && isReadable(field) ? field : undefined
}

/** The path, or what is wrong with it. */
export function pathOf(catalog: Catalog, model: Model, text: string): Path | string {
  const names = text.split('.')
  if (names.length > MAX_STEPS + 1) return `"${text.slice(0, 100)}" has more than ${MAX_STEPS} steps`
  const steps: Step[] = []
  let current = model
  for (const [index, name] of names.entries()) {
    const field = fieldOf(catalog, current, name)
    if (!field) return unknownField(catalog, current, name)
    if (index === names.length - 1) return { steps, model: current, field }
    if (!field.relation) return `${current.name}.${name} is no relation: nothing can follow it`
    const target = catalog.target(field.relation)
    steps.push({ from: current, field, target })
    current = target
  }
  return 'a path names at least one field'
}

function unknownField(catalog: Catalog, model: Model, name: string): string {
  const known = ['id', 'version', ...model.fields.keys()].filter((each) => fieldOf(catalog, model, each))
  return `${model.name} has no field "${name.slice(0, 100)}"${didYouMean(name, known)}`
}

export function isOverList({ steps }: Path): boolean {
  return steps.some((step) => step.field.relation?.isList)
}

export function stepOf(catalog: Catalog, from: Model, field: Field): Step {
  if (!field.relation) throw new Error(`${field.name} is no relation`)
  return { from, field, target: catalog.target(field.relation) }
}
