// Models in JSON: which files hold some, and what they hold.
import { didYouMean } from '../../model/values/did-you-mean.js'
import { isObject } from '../../model/values/value.js'
import { describeJsonFault } from './json-error.js'
import { readModelFile, type Exported, type ModelFile } from './model-files.js'

const FIELDS = 'fields'

/** A slip of the pen in a model below a folder is a fault, and not a reason to pass it over. */
export function readJson(source: ModelFile): Exported {
  const text = readModelFile(source)
    ?.toString('utf8')
    .replace(/^\uFEFF/, '')
  if (text === undefined) return { kind: 'large' }
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const what = describeJsonFault(text, error)
    if (!source.isNamed && !text.includes(FIELDS)) return { kind: 'no-json', detail: what }
    source.fault(what)
    return []
  }
  const values: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed]
  if (!source.isNamed && !values.some(isModel)) return { kind: 'json' }
  if (values.length === 0) source.fault('there is no model in the list')
  return values
}

/** As it is, or with a slip in one of the two names. */
function isModel(value: unknown): boolean {
  if (!isObject(value)) return false
  if (Object.hasOwn(value, 'name') && Object.hasOwn(value, FIELDS)) return true
  return Object.entries(value).some(([key, held]) => didYouMean(key, [FIELDS]) !== '' && holdsFields(held))
}

function holdsFields(value: unknown): boolean {
  if (!isObject(value)) return false
  const fields = Object.values(value)
  return fields.length > 0 && fields.every((field) => isObject(field) && typeof field['type'] === 'string')
}
