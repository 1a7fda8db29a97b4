import type { Sequence } from '../values/field.js'
import { didYouMean } from '../values/did-you-mean.js'
import { isNonNegativeInteger, isObject, validateText } from '../values/value.js'

const SEQUENCE_OPTIONS = ['prefix', 'suffix', 'padding', 'next']
const MAX_SEQUENCE_PADDING = 15

export function checkSequence(raw: unknown, report: (error: string) => void): Sequence | undefined {
  if (raw === undefined) return undefined
  if (!isObject(raw)) {
    report('sequence must be an object such as { "prefix": "SO", "padding": 5 }')
    return undefined
  }
  for (const option of Object.keys(raw)) {
    if (!SEQUENCE_OPTIONS.includes(option))
      report(`a sequence has no option "${option}"${didYouMean(option, SEQUENCE_OPTIONS)}`)
  }
  const { prefix = '', suffix = '', padding = 0, next = 1 } = raw
  if (typeof prefix !== 'string' || typeof suffix !== 'string') report('prefix and suffix must be text')
  const fault = validateText(`${String(prefix)}${String(suffix)}`)
  if (fault !== undefined) report(`prefix and suffix ${fault}`)
  if (!isNonNegativeInteger(padding) || padding > MAX_SEQUENCE_PADDING)
    report(`padding must be a whole number from 0 to ${MAX_SEQUENCE_PADDING}`)
  if (!isNonNegativeInteger(next) || !Number.isSafeInteger(next)) report('next must be a whole number from 0')
  return { prefix: String(prefix), suffix: String(suffix), padding: Number(padding), next: Number(next) }
}
