import type { Condition } from './condition.js'
import type { Field } from '../values/field.js'
import { foldText } from '../values/text-folding.js'
import { isReadByDefault, type Model } from '../definition/model.js'
import type { Visibility } from './visibility.js'

const MAX_TEXT_SEARCH_CHARACTERS = 100
const MAX_TEXT_SEARCH_WORDS = 8
const MAX_TEXT_SEARCH_FIELDS = 8
const SEARCHED_TYPES: readonly string[] = ['string', 'text', 'enum']

/** Search words, and the fields that they may occur in. */
export interface TextSearch {
  readonly words: readonly string[]
  readonly fields: readonly Field[]
}

/** Parses search words as people type them. Each must occur in at least one text field that a list of this model shows. */
export function parseTextSearch(
  visibility: Visibility,
  model: Model,
  input: unknown,
  errors: string[],
): TextSearch | undefined {
  if (typeof input !== 'string' || input.length > MAX_TEXT_SEARCH_CHARACTERS) {
    errors.push(`q must be a single text of at most ${MAX_TEXT_SEARCH_CHARACTERS} characters`)
    return undefined
  }
  const words = input.split(/\s+/).filter((word) => word !== '')
  if (words.length === 0) return undefined
  const fields = listSearchedFields(visibility, model)
  if (words.length > MAX_TEXT_SEARCH_WORDS) errors.push(`q must have at most ${MAX_TEXT_SEARCH_WORDS} words`)
  if (fields.length === 0) errors.push(`q: ${model.name} has no text fields to search`)
  return { words: words.slice(0, MAX_TEXT_SEARCH_WORDS), fields }
}

export function buildTextCondition({ words, fields }: TextSearch): Condition {
  const conditions = words.map((word) => matchAnyField(fields, word))
  return { kind: 'group', operator: 'and', conditions, at: 'q' }
}

/** Returns a function that does the same as the condition, for values that are not in the database. */
export function buildTextMatcher({
  words,
  fields,
}: TextSearch): (getValue: (name: string) => unknown) => boolean {
  const foldedWords = words.map(foldText)
  return (getValue) => {
    const values = fields.map(({ name }) => getValue(name)).filter((value) => typeof value === 'string')
    const texts = values.map(foldText)
    return foldedWords.every((word) => texts.some((text) => text.includes(word)))
  }
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
