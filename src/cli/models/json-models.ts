// Reads models from JSON files.
import { didYouMean } from '../../model/values/did-you-mean.js'
import { isObject } from '../../model/values/value.js'
import { describeJsonError } from './json-error.js'
import { readModelFile, type ModelFileExports, type ModelFile } from './model-files.js'

const FIELDS_KEY = 'fields'

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
  if (values.length === 0) source.reportError('there is no model in the list')
  return values
}

/** Accepts an object with `name` and `fields`, or one whose key for the fields is misspelled. */
function isModelLike(value: unknown): boolean {
  if (!isObject(value)) return false
  if (Object.hasOwn(value, 'name') && Object.hasOwn(value, FIELDS_KEY)) return true
  return Object.entries(value).some(
    ([key, held]) => didYouMean(key, [FIELDS_KEY]) !== '' && hasFieldDefinitions(held),
  )
}

function hasFieldDefinitions(value: unknown): boolean {
  if (!isObject(value)) return false
  const fields = Object.values(value)
  return fields.length > 0 && fields.every((field) => isObject(field) && typeof field['type'] === 'string')
}
