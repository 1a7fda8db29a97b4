// Templates such as `{firstName} {lastName}` define the computed fields of models written as JSON.
import type { Value, Values } from './value.js'

const PLACEHOLDER = /\{([^{}]*)\}/g

export function listTemplateFields(template: string): string[] {
  return [...template.matchAll(PLACEHOLDER)].map((match) => match[1] ?? '')
}

/** Collapses white space, so that missing values leave no gap. An empty result is null. */
export function compileTemplate(template: string): (record: Readonly<Values>) => Value {
  // Splitting by a capture group puts the captured field names at the odd indexes.
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
