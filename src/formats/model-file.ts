// A definition → the text of a file that defines it.
import type { ModelDefinition } from '../model/definition/define-model.js'

export const FORMATS = ['ts', 'json'] as const
export type Format = (typeof FORMATS)[number]

const WIDTH = 110
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

export function printModel(definition: ModelDefinition, format: Format): string {
  if (format === 'json') return `${JSON.stringify(definition, null, 2)}\n`
  const last = definition.name.slice(definition.name.lastIndexOf('.') + 1)
  // Words of the language begin with a small letter.
  const constant = /^[A-Z]/.test(last) ? last : `Model_${last}`
  return `import { defineModel } from 'verso'\n\nexport const ${constant} = defineModel(${print(definition, '')})\n`
}

/** On one line where it fits, as people would write it. */
function print(value: unknown, indent: string): string {
  if (typeof value !== 'object' || value === null) return printScalar(value)
  const isList = Array.isArray(value)
  const open = isList ? '[' : '{'
  const close = isList ? ']' : '}'
  const deeper = `${indent}  `
  const parts = Object.entries(value).map(([key, part]) => {
    const name = isList ? '' : `${IDENTIFIER.test(key) ? key : printScalar(key)}: `
    return name + print(part, deeper)
  })
  const line = isList ? `[${parts.join(', ')}]` : `{ ${parts.join(', ')} }`
  const isShort = indent.length + line.length <= WIDTH && !line.includes('\n')
  if (isShort && indent !== '') return line
  return `${open}\n${parts.map((part) => `${deeper}${part},\n`).join('')}${indent}${close}`
}

function printScalar(value: unknown): string {
  if (typeof value !== 'string' || value.includes("'")) return JSON.stringify(value)
  return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"')}'`
}
