// Reads models from JSON files.
import { didYouMean } from '../../model/values/did-you-mean.js'
import { isObject } from '../../model/values/value.js'
import { readModelFile, type ModelFileExports, type ModelFile } from './model-files.js'

const FIELDS_KEY = 'fields'
const JSON_TOKEN =
  /(?<text>"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-f]{4}))*")|(?<word>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null)|(?<mark>[{}[\],:])/iuy
const JSON_WHITESPACE = /[ \t\r\n]*/y

/** In a folder, a JSON file that looks like a mistyped model is an error; other JSON is skipped. */
export function readJsonModels(source: ModelFile): ModelFileExports {
  const text = readModelFile(source)
    ?.toString('utf8')
    .replace(/^\uFEFF/, '')
  if (text === undefined) return { kind: 'large' }
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const what = describeJsonError(text, error)
    if (!source.isExplicit && !text.includes(FIELDS_KEY)) return { kind: 'no-json', detail: what }
    source.reportError(what)
    return []
  }
  const values: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed]
  if (!source.isExplicit && !values.some(isModelLike)) return { kind: 'json' }
  if (values.length === 0) source.reportError('the list contains no model')
  return values
}

/** Accepts an object with `name` and `fields`, or one whose key for the fields is misspelled. */
function isModelLike(value: unknown): boolean {
  if (!isObject(value)) return false
  if (Object.hasOwn(value, 'name') && Object.hasOwn(value, FIELDS_KEY)) return true
  return Object.entries(value).some(
    ([key, member]) => didYouMean(key, [FIELDS_KEY]) !== '' && hasFieldDefinitions(member),
  )
}

function hasFieldDefinitions(value: unknown): boolean {
  if (!isObject(value)) return false
  const fields = Object.values(value)
  return fields.length > 0 && fields.every((field) => isObject(field) && typeof field['type'] === 'string')
}

/**
 * Describes the error that JSON.parse raised on this text as `line 3, column 14: …`. JSON.parse itself names a position
 * for some errors only.
 */
function describeJsonError(text: string, error: Error): string {
  const reportedOffset = /at position (\d+)/.exec(error.message)?.[1]
  const offset = reportedOffset === undefined ? findErrorOffset(text) : Number(reportedOffset)
  const before = text.slice(0, offset).split('\n')
  const what = error.message.replace(/ in JSON at position.*$|,? \.{0,3}".*$/s, '')
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}: ${what}`
}

/** Finds errors without a position: unexpected end, unknown word, or punctuation in place of a value. */
function findErrorOffset(text: string): number {
  let previous = ','
  for (let offset = skipWhitespace(text, 0); ; offset = skipWhitespace(text, JSON_TOKEN.lastIndex)) {
    JSON_TOKEN.lastIndex = offset
    const groups = JSON_TOKEN.exec(text)?.groups
    if (!groups) return offset
    const mark = groups['mark'] ?? ''
    const isEmptyList = previous === '[' && mark === ']'
    if (':,['.includes(previous) && '}],:'.includes(mark) && mark !== '' && !isEmptyList) return offset
    previous = mark === '' ? 'a value' : mark
  }
}

function skipWhitespace(text: string, offset: number): number {
  JSON_WHITESPACE.lastIndex = offset
  JSON_WHITESPACE.exec(text)
  return JSON_WHITESPACE.lastIndex
}
