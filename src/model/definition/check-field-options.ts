// Checks the options of a field one by one.
import { MAX_PRECISION } from '../values/decimal.js'
import { didYouMean } from '../values/did-you-mean.js'
import {
  FieldError,
  type Choice,
  type Field,
  type FieldTypeName,
  type Relation,
  type Sequence,
} from '../values/field.js'
import { DEFAULT_STRING_CHARACTERS, MAX_TEXT_BYTES, parseValue } from '../values/field-types.js'
import { compileTemplate } from './record-values.js'
import {
  isNonNegativeInteger,
  isObject,
  validateText,
  type Value,
  type Values,
  type JsonObject,
} from '../values/value.js'

const SEQUENCE_OPTIONS = ['prefix', 'suffix', 'padding', 'next']
export const MAX_SEQUENCE_PADDING = 15

export type ReportError = (error: string) => void

export function checkLength(
  type: FieldTypeName,
  raw: JsonObject,
  report: ReportError,
): Pick<Field, 'minLength' | 'maxLength'> {
  // A computed string gets the limit of a text: its inputs are within their own limits already.
  const isShort = (type === 'string' || type === 'enum') && raw['computed'] === undefined
  const limit = isShort ? DEFAULT_STRING_CHARACTERS : MAX_TEXT_BYTES
  const { length } = raw
  if (length === undefined) return { minLength: 0, maxLength: limit }
  const { min = 0, max = limit } = isObject(length) ? length : { max: length }
  if (
    !isNonNegativeInteger(min) ||
    !isNonNegativeInteger(max) ||
    max < 1 ||
    max > MAX_TEXT_BYTES ||
    min > max
  ) {
    report(`length must be a whole number from 1 to ${MAX_TEXT_BYTES}, or { min, max } with min at most max`)
    return { minLength: 0, maxLength: limit }
  }
  return { minLength: min, maxLength: max }
}

export function checkDigits(
  type: FieldTypeName,
  raw: JsonObject,
  report: ReportError,
): Pick<Field, 'precision' | 'scale'> {
  const { precision = 20, scale = 2 } = raw
  if (type !== 'decimal') return { precision: 0, scale: 0 }
  if (!isNonNegativeInteger(precision) || precision < 1 || precision > MAX_PRECISION) {
    report(`precision must be a whole number from 1 to ${MAX_PRECISION}`)
  } else if (!isNonNegativeInteger(scale) || scale > precision) {
    report('scale must be a whole number from 0 to the precision')
  } else return { precision, scale }
  return { precision: MAX_PRECISION, scale: 0 }
}

export function checkSecret(secret: unknown, report: ReportError): Field['secret'] {
  if (secret === undefined || secret === false) return undefined
  if (secret === 'password') return 'password'
  if (secret !== true) report('secret must be true, false or "password"')
  return 'hidden'
}

export function checkComputed(computed: unknown, report: ReportError): Field['computed'] {
  if (computed === undefined) return undefined
  if (typeof computed === 'function') return computed as (record: Readonly<Values>) => unknown
  if (typeof computed === 'string') return compileTemplate(computed)
  report('computed must be a function, or a template such as "{firstName} {lastName}"')
  return undefined
}

export function checkSelection(
  selection: unknown,
  field: Field,
  report: ReportError,
): readonly Choice[] | undefined {
  if (selection === undefined) {
    if (field.type === 'enum') report('an enum needs a selection')
    return undefined
  }
  if (!Array.isArray(selection) || selection.length === 0) {
    report('selection must be a non-empty list of values, or of { value, title }')
    return undefined
  }
  const choices = selection.map((item: unknown): Choice => {
    const { value, title } = isObject(item) ? item : { value: item, title: undefined }
    const parsed = parseValue(field, value)
    if (parsed instanceof FieldError) report(`selection: ${JSON.stringify(value)} ${parsed.message}`)
    return { value: value as string | number, title: typeof title === 'string' ? title : String(value) }
  })
  if (new Set(choices.map((choice) => choice.value)).size < choices.length)
    report('selection contains the same value twice')
  return choices
}

export function checkBound(
  bound: unknown,
  option: string,
  field: Field,
  report: ReportError,
): string | number | undefined {
  if (bound === undefined) return undefined
  const value = parseValue(field, bound)
  if (value instanceof FieldError) {
    report(`${option} ${value.message}`)
    return undefined
  }
  return value as string | number
}

export function checkDefault(value: unknown, field: Field, report: ReportError): Value | undefined {
  if (value === undefined) return undefined
  if (value === 'now' && ['date', 'time', 'datetime'].includes(field.type)) return value
  const parsed = parseValue(field, value)
  if (parsed instanceof FieldError) {
    report(`default ${parsed.message}`)
    return undefined
  }
  return parsed
}

export function checkSequence(raw: unknown, report: ReportError): Sequence | undefined {
  if (raw === undefined) return undefined
  if (!isObject(raw)) {
    report('sequence must be an object such as { "prefix": "SO", "padding": 5 }')
    return undefined
  }
  for (const option of Object.keys(raw)) {
    if (!SEQUENCE_OPTIONS.includes(option))
      report(`sequence: unknown option "${option}"${didYouMean(option, SEQUENCE_OPTIONS)}`)
  }
  const { prefix = '', suffix = '', padding = 0, next = 1 } = raw
  if (typeof prefix !== 'string' || typeof suffix !== 'string')
    report('sequence: prefix and suffix must be text')
  const error = validateText(`${String(prefix)}${String(suffix)}`)
  if (error !== undefined) report(`sequence: prefix and suffix ${error}`)
  if (!isNonNegativeInteger(padding) || padding > MAX_SEQUENCE_PADDING)
    report(`sequence: padding must be a whole number from 0 to ${MAX_SEQUENCE_PADDING}`)
  if (!isNonNegativeInteger(next) || !Number.isSafeInteger(next))
    report('sequence: next must be a whole number from 0')
  return { prefix: String(prefix), suffix: String(suffix), padding: Number(padding), next: Number(next) }
}

/** Checks the options of a relation. The catalog checks later that the target and its field exist. */
export function checkRelation(
  type: FieldTypeName,
  raw: JsonObject,
  report: ReportError,
): Relation | undefined {
  const isList = type === 'one-to-many' || type === 'many-to-many'
  if (!isList && type !== 'many-to-one' && type !== 'one-to-one') return undefined
  const { target, mappedBy, owned } = raw
  if (typeof target !== 'string') report('target must be the name of a model')
  if (mappedBy !== undefined && typeof mappedBy !== 'string') report('mappedBy must be the name of a field')
  if (mappedBy === undefined && type === 'one-to-many')
    report('a one-to-many needs mappedBy: the many-to-one field of the target that refers to this model')
  if (mappedBy !== undefined && raw['required'] === true)
    report('an inverse relation (with mappedBy) cannot be required')
  if (owned !== undefined && typeof owned !== 'boolean') report('owned must be true or false')
  return {
    target: String(target),
    isList,
    mappedBy: typeof mappedBy === 'string' ? mappedBy : undefined,
    owned: owned === true || (type === 'many-to-many' && mappedBy === undefined),
    ...(isList ? checkOrderBy(raw['orderBy'], report) : {}),
  }
}

function checkOrderBy(orderBy: unknown, report: ReportError): Pick<Relation, 'orderBy'> {
  if (orderBy === undefined) return {}
  if (!Array.isArray(orderBy) || !orderBy.every((key) => typeof key === 'string')) {
    report('orderBy must be a list of field names, such as ["sequence", "-createdOn"]')
    return {}
  }
  return orderBy.length === 0 ? {} : { orderBy }
}
