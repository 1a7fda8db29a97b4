// Templates such as `{firstName} {lastName}`: the computed fields of models written as JSON.
import type { Value, Values } from './value.js'

const PLACEHOLDER = /\{([^{}]*)\}/g

export function listTemplateFields(template: string): string[] {
  return [...template.matchAll(PLACEHOLDER)].map((match) => match[1] ?? '')
}

/** What is missing leaves no gap: white space is folded, and nothing at all is null. */
export function compileTemplate(template: string): (record: Readonly<Values>) => Value {
  // Of what a split by a group gives, every other piece is what the group has matched.
  const pieces = template.split(PLACEHOLDER)
  return (record) => {
    let text = ''
    for (const [index, piece] of pieces.entries())
      text += index % 2 === 0 ? piece : formatTemplateValue(record[piece] ?? null)
    if (EXTRA_WHITE_SPACE.test(text)) text = text.replace(/\s+/g, ' ')
    text = text.trim()
    return text === '' ? null : text
  }
}

/** White space that is not a single space. */
const EXTRA_WHITE_SPACE = /\s\s|[^\S ]/

function formatTemplateValue(value: Value): string {
  if (value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
