// Checks that both sides of a relation agree. Needs all models.
import type { Field } from '../values/field.js'
import type { Model } from '../definition/model.js'
import { didYouMean } from '../values/did-you-mean.js'

/** The type of the field that `mappedBy` names, by the type of the inverse relation. */
const INVERSE_TYPES: Readonly<Record<string, string>> = {
  'one-to-one': 'one-to-one',
  'one-to-many': 'many-to-one',
  'many-to-many': 'many-to-many',
}

/** Returns an error message if the relation is invalid. */
export function validateRelation(
  models: ReadonlyMap<string, Model>,
  model: Model,
  { name, type, relation }: Field,
): string | undefined {
  if (!relation) return undefined
  const target = models.get(relation.target)
  if (!target) return `there is no model "${relation.target}"${didYouMean(relation.target, models.keys())}`
  if (relation.mappedBy === undefined) return undefined
  const inverse = target.fields.get(relation.mappedBy)
  const expected = INVERSE_TYPES[type]
  if (!inverse) {
    const meant = didYouMean(relation.mappedBy, target.fields.keys())
    return `mappedBy: ${target.name} has no field "${relation.mappedBy}"${meant}`
  }
  if (
    inverse.type !== expected ||
    inverse.relation?.target !== model.name ||
    (inverse.kept && !model.name.startsWith('verso.'))
  )
    return `mappedBy: ${target.name}.${inverse.name} must be a ${expected} to ${model.name}`
  if (inverse.relation.mappedBy !== undefined)
    return `mappedBy: ${target.name}.${inverse.name} has mappedBy too: one side must hold the relation`
  const rival = [...model.fields.values()].find(
    (other) =>
      other.name !== name &&
      other.relation?.owned &&
      relation.owned &&
      other.relation.target === relation.target &&
      other.relation.mappedBy === relation.mappedBy,
  )
  return rival && `mappedBy: "${rival.name}" owns the same records`
}
