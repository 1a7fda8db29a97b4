import type { Condition } from './condition.js'
import type { Field } from '../values/field.js'
import { isReadByDefault, type Model } from '../definition/model.js'
import type { Visibility } from './visibility.js'

const MAX_TEXT_SEARCH_CHARACTERS = 100
const MAX_TEXT_SEARCH_WORDS = 8
const MAX_TEXT_SEARCH_FIELDS = 8
const SEARCHED_TYPES: readonly string[] = ['string', 'text', 'enum']

/** Parses search words as people type them. Each must occur in at least one text field that a list of this model shows. */
export function parseTextSearch(
  visibility: Visibility,
  model: Model,
  input: unknown,
  errors: string[],
): Condition | undefined {
  if (typeof input !== 'string' || input.length > MAX_TEXT_SEARCH_CHARACTERS) {
    errors.push(`q must be a single text of at most ${MAX_TEXT_SEARCH_CHARACTERS} characters`)
    return undefined
  }
  const words = input.split(/\s+/).filter((word) => word !== '')
  if (words.length === 0) return undefined
  const fields = listSearchedFields(visibility, model)
  if (words.length > MAX_TEXT_SEARCH_WORDS) errors.push(`q must have at most ${MAX_TEXT_SEARCH_WORDS} words`)
  if (fields.length === 0) errors.push(`q: ${model.name} has no text fields to search`)
  const conditions = words.slice(0, MAX_TEXT_SEARCH_WORDS).map((word) => matchAnyField(fields, word))
  return { kind: 'group', operator: 'and', conditions, at: 'q' }
}

function matchAnyField(fields: readonly Field[], word: string): Condition {
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

/** Lists the text fields among the name field and the list fields, or all text fields if there are none. */
function listSearchedFields(visibility: Visibility, model: Model): readonly Field[] {
  const listed = [...new Set([model.nameField ?? '', ...model.listFields])]
  const isText = (field: Field) =>
    isReadByDefault(field) &&
    SEARCHED_TYPES.includes(field.type) &&
    visibility.findReadable(model, field.name) !== undefined
  const named = listed.flatMap((name) => model.fields.get(name) ?? []).filter(isText)
  const fields = named.length > 0 ? named : [...model.fields.values()].filter(isText)
  return fields.slice(0, MAX_TEXT_SEARCH_FIELDS)
}
