// Templates such as `{firstName} {lastName}`: the computed fields of models written as JSON.
import type { Value, Values } from './value.js'

const PLACE = /\{([^{}]*)\}/g

export function fieldsOfTemplate(template: string): string[] {
  return [...template.matchAll(PLACE)].map((match) => match[1] ?? '')
}

/** What is missing leaves no gap: white space is folded, and nothing at all is null. */
export function computeByTemplate(template: string): (record: Readonly<Values>) => Value {
  return (record) => {
    const text = template
      .replace(PLACE, (_, name: string) => print(record[name] ?? null))
      .replace(/\s+/g, ' ')
      .trim()
    return text === '' ? null : text
  }
}

function print(value: Value): string {
  if (value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
