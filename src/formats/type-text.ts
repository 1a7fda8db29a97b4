// Spells names, texts and comments in TypeScript.
import { toComponentName } from './component-name.js'

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

/** Returns an identifier that depends on the model alone. */
export function spellTypeName(model: string): string {
  return toComponentName(model).replaceAll(/[^\w$]/g, '_')
}

export function spellString(text: string): string {
  const escaped = JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(String.raw`\"`, '"')
    .replaceAll("'", String.raw`\'`)
  return `'${escaped.replaceAll('\u2028', String.raw`\u2028`).replaceAll('\u2029', String.raw`\u2029`)}'`
}

/** A property name needs no quotes if it is an identifier, also a reserved word. */
export function spellKey(name: string): string {
  return IDENTIFIER.test(name) ? name : spellString(name)
}

export function spellUnion(values: readonly (string | number)[]): string {
  if (values.length === 0) return 'never'
  return values.map((value) => (typeof value === 'string' ? spellString(value) : String(value))).join(' | ')
}

/** A doc comment; nothing without a text. */
export function spellComment(texts: readonly string[], indent = ''): string {
  const lines = texts
    .flatMap((text) => text.split(/\r\n|[\r\n\u2028\u2029]/))
    .map((line) => line.trim().replaceAll('*/', String.raw`*\/`))
    .filter((line) => line !== '')
  if (lines.length === 0) return ''
  if (lines.length === 1) return `${indent}/** ${lines.join('')} */\n`
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`
}

/** Titles that only repeat the name are no comment. */
export function isTitleOfName(title: string, name: string): boolean {
  const fold = (text: string) => text.replaceAll(/[\s_-]/g, '').toLowerCase()
  return fold(title) === fold(name)
}
