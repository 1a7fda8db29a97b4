import type { Condition } from './condition.js'
import type { Field } from '../values/field-types.js'
import { isShown, type Model } from '../definition/model.js'
import type { Sight } from './visibility.js'

const MAX_LENGTH = 100
const MAX_WORDS = 8
const MAX_FIELDS = 8
const TEXTS: readonly string[] = ['string', 'text', 'enum']

/** Words as people type them: each must be in one of the texts that a list of this model shows. */
export function conditionOfWords(
  sight: Sight,
  model: Model,
  input: unknown,
  faults: string[],
): Condition | undefined {
  if (input === undefined) return undefined
  if (typeof input !== 'string' || input.length > MAX_LENGTH) {
    faults.push(`q must be one text of at most ${MAX_LENGTH} characters`)
    return undefined
  }
  const words = input.split(/\s+/).filter((word) => word !== '')
  if (words.length === 0) return undefined
  const fields = textsOf(sight, model)
  if (words.length > MAX_WORDS) faults.push(`q must have at most ${MAX_WORDS} words`)
  if (fields.length === 0) faults.push(`q: ${model.name} has no texts to look into`)
  const conditions = words.slice(0, MAX_WORDS).map((word) => oneOf(fields, word))
  return { kind: 'group', operator: 'and', conditions, at: 'q' }
}

function oneOf(fields: readonly Field[], word: string): Condition {
  const value = `%${word.replace(/[\\%_]/g, '\\$&')}%`
  const conditions = fields.map(({ name }): Condition => ({
    kind: 'term',
    path: name,
    operator: 'like',
    value,
    at: 'q',
  }))
  return { kind: 'group', operator: 'or', conditions, at: 'q' }
}

/** The texts among the name and the list fields, or if there are none, any. */
function textsOf(sight: Sight, model: Model): readonly Field[] {
  const shown = [...new Set([model.nameField ?? '', ...model.listFields])]
  const isText = (field: Field) =>
    isShown(field) && TEXTS.includes(field.type) && sight.readable(model, field.name) !== undefined
  const named = shown.flatMap((name) => model.fields.get(name) ?? []).filter(isText)
  const fields = named.length > 0 ? named : [...model.fields.values()].filter(isText)
  return fields.slice(0, MAX_FIELDS)
}
