// Checks that need no request, such as digits of a number. The service checks everything again.
import type { FieldInfo } from '../service/model-info.js'
import type { Texts } from '../texts/english.js'
import { isInvalidInput } from './field-props.js'
import { countFractionDigits } from './number-text.js'

const DECIMAL = /^-?\d+(\.\d+)?$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** What is wrong with a value that a person typed; undefined if nothing is known to be wrong. Empty values are left to the service. */
export function findFieldProblem(
  field: FieldInfo,
  value: unknown,
  texts: Texts['fields'],
): string | undefined {
  if (value === null || value === undefined) return undefined
  if (isInvalidInput(value)) return explainInvalid(field, value.$invalid, texts)
  if (field.choices !== undefined) return undefined
  switch (field.kind) {
    case 'string':
    case 'text':
      return typeof value === 'string' ? findExcess(field, value, texts) : undefined
    case 'integer':
    case 'long':
      return typeof value === 'number' ? undefined : texts.noInteger
    case 'decimal':
      return findDecimalProblem(field, value, texts)
    case 'uuid':
      return typeof value === 'string' && UUID.test(value) ? undefined : texts.noUuid
    default:
      return undefined
  }
}

function explainInvalid({ kind }: FieldInfo, text: string, texts: Texts['fields']): string {
  if (kind === 'time') return texts.incompleteTime
  if (kind !== 'json') return texts.incompleteDate
  try {
    JSON.parse(text)
    return texts.noJson('')
  } catch (error) {
    return texts.noJson(error instanceof Error ? error.message : String(error))
  }
}

/** Characters as the service counts them: an emoji is one. */
export function countCharacters(text: string): number {
  return Array.from(text).length
}

function findExcess({ maxSize }: FieldInfo, text: string, texts: Texts['fields']): string | undefined {
  // A text has no more characters than code units, so most texts need no counting.
  if (maxSize === undefined || text.length <= maxSize) return undefined
  const excess = countCharacters(text) - maxSize
  return excess > 0 ? texts.tooLong(excess) : undefined
}

function findDecimalProblem(
  { scale = 0 }: FieldInfo,
  value: unknown,
  texts: Texts['fields'],
): string | undefined {
  if (typeof value === 'number') return undefined
  if (typeof value !== 'string' || !DECIMAL.test(value)) return texts.noNumber
  return countFractionDigits(value) > scale ? texts.tooManyDigits(scale) : undefined
}
