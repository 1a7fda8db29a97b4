// Generates the text of a model file from a definition.
import type { ModelDefinition } from '../model/definition/define-model.js'

export const MODEL_FORMATS = ['ts', 'json'] as const
export type ModelFormat = (typeof MODEL_FORMATS)[number]

const MAX_LINE_CHARACTERS = 110
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

export function formatModel(definition: ModelDefinition, format: ModelFormat): string {
  if (format === 'json') return `${JSON.stringify(definition, null, 2)}\n`
  const last = definition.name.slice(definition.name.lastIndexOf('.') + 1)
  // An identifier with a capital letter cannot be a reserved word.
  const constant = /^[A-Z]/.test(last) ? last : `Model_${last}`
  return `import { defineModel } from 'verso-records'\n\nexport const ${constant} = defineModel(${formatValue(definition, '')})\n`
}

/** Formats on one line if it fits. */
function formatValue(value: unknown, indent: string): string {
  if (typeof value !== 'object' || value === null) return formatScalar(value)
  const isList = Array.isArray(value)
  const open = isList ? '[' : '{'
  const close = isList ? ']' : '}'
  const deeper = `${indent}  `
  const parts = Object.entries(value).map(([key, part]) => {
    const name = isList ? '' : `${IDENTIFIER.test(key) ? key : formatScalar(key)}: `
    return name + formatValue(part, deeper)
  })
  const line = isList ? `[${parts.join(', ')}]` : `{ ${parts.join(', ')} }`
  const isShort = indent.length + line.length <= MAX_LINE_CHARACTERS && !line.includes('\n')
  if (isShort && indent !== '') return line
  return `${open}\n${parts.map((part) => `${deeper}${part},\n`).join('')}${indent}${close}`
}

function formatScalar(value: unknown): string {
  if (typeof value !== 'string' || value.includes("'")) return JSON.stringify(value)
  return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"')}'`
}
