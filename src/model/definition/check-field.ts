// Checks one field of a definition, written in TypeScript or JSON, and reports every error.
import { FieldError, type Choice, type Field, type FieldTypeName } from '../values/field.js'
import {
  DEFAULT_STRING_CHARACTERS,
  FIELD_TYPES,
  MAX_TEXT_BYTES,
  parseValue,
  type FieldType,
} from '../values/field-types.js'
import { checkRelation } from './check-relation.js'
import { MAX_PRECISION } from '../values/decimal.js'
import { didYouMean } from '../values/did-you-mean.js'
import { compileTemplate } from '../values/template.js'
import { checkSequence } from './check-sequence.js'
import { isNonNegativeInteger, isObject, type Value, type Values } from '../values/value.js'

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]{0,58}$/
// In lower case: SQLite's column names are case-insensitive. The last line names PostgreSQL's system columns.
const RESERVED_FIELD_NAMES = new Set(
  [
    ...['id', 'version', 'createdOn', 'createdBy', 'updatedOn', 'updatedBy', 'archived'],
    ...['prototype', 'selected', ...Object.getOwnPropertyNames(Object.prototype)],
    ...['ctid', 'xmin', 'xmax', 'cmin', 'cmax', 'tableoid'],
  ].map((name) => name.toLowerCase()),
)
const FIELD_TYPE_NAMES = Object.keys(FIELD_TYPES)
const COMMON_OPTIONS = ['type', 'title', 'help', 'renamedFrom', 'copy'] as const
const ALLOWED_OPTIONS = Object.fromEntries(
  Object.entries(FIELD_TYPES).map(([type, { options }]) => [
    type,
    new Set<string>([...options, ...COMMON_OPTIONS]),
  ]),
) as unknown as Readonly<Record<FieldTypeName, ReadonlySet<string>>>
const TEXT_OPTIONS = ['title', 'help', 'renamedFrom']
const BOOLEAN_OPTIONS = ['required', 'unique', 'copy']
const GENERATED_OPTIONS = [
  ['computed', 'computed field'],
  ['sequence', 'sequence'],
] as const

type ReportFieldError = (fault: string) => void

/** Returns undefined if the definition has no valid type. */
export function checkField(name: string, raw: unknown, report: ReportFieldError): Field | undefined {
  if (!FIELD_NAME.test(name)) {
    report('a field name is a letter, then letters, digits or _, at most 59 characters')
  } else if (RESERVED_FIELD_NAMES.has(name.toLowerCase())) report('this name is taken by the service')
  if (!isObject(raw)) {
    report('must be an object such as { "type": "string" }')
    return undefined
  }
  const { type } = raw
  if (typeof type !== 'string' || !FIELD_TYPE_NAMES.includes(type)) {
    const meant = typeof type === 'string' ? didYouMean(type, FIELD_TYPE_NAMES) : ''
    report(`type must be one of ${FIELD_TYPE_NAMES.join(', ')}${meant}`)
    return undefined
  }
  checkOptions(raw, type as FieldTypeName, report)
  return buildField(name, type as FieldTypeName, raw, report)
}

function checkOptions(
  raw: Readonly<Record<string, unknown>>,
  type: FieldTypeName,
  report: ReportFieldError,
): void {
  const allowed = ALLOWED_OPTIONS[type]
  for (const option of Object.keys(raw)) {
    if (!allowed.has(option) && raw[option] !== undefined)
      report(`${type} has no option "${option}"${didYouMean(option, allowed)}`)
  }
  for (const option of TEXT_OPTIONS) {
    if (raw[option] !== undefined && typeof raw[option] !== 'string') report(`${option} must be text`)
  }
  for (const option of BOOLEAN_OPTIONS) {
    if (raw[option] !== undefined && typeof raw[option] !== 'boolean')
      report(`${option} must be true or false`)
  }
  if (raw['secret'] === 'password' && raw['default'] !== undefined) report('a password has no default')
  for (const [option, kind] of GENERATED_OPTIONS) {
    if (raw[option] === undefined) continue
    for (const other of ['required', 'default', 'secret']) {
      if (raw[other] !== undefined) report(`a ${kind} has no ${other}`)
    }
  }
  if (raw['sequence'] !== undefined && (raw['computed'] ?? raw['selection']) !== undefined)
    report('a sequence is neither computed nor a selection')
}

function buildField(
  name: string,
  type: FieldTypeName,
  raw: Readonly<Record<string, unknown>>,
  report: ReportFieldError,
): Field {
  const sequence = checkSequence(raw['sequence'], report)
  const base: Field = {
    name,
    type,
    title: typeof raw['title'] === 'string' ? raw['title'] : deriveTitle(name),
    help: typeof raw['help'] === 'string' ? raw['help'] : undefined,
    required: raw['required'] === true,
    // Numbers of a sequence and one-to-one references are unique by nature.
    unique: raw['unique'] === true || sequence !== undefined || isUniqueReference(type, raw),
    min: undefined,
    max: undefined,
    ...checkLength(type, raw, report),
    ...checkDigits(type, raw, report),
    default: undefined,
    selection: undefined,
    secret: checkSecret(raw['secret'], report),
    computed: checkComputed(raw['computed'], report),
    kept: false,
    renamedFrom: checkFormerName(raw['renamedFrom'], name, report),
    copied: raw['copy'] !== false,
    sequence,
    relation: checkRelation(type, raw, report),
  }
  const { selection: choices, min: lower, max: upper, default: defaultValue } = raw
  // Most fields have none of these options.
  if ([choices, lower, upper, defaultValue].every((option) => option === undefined) && type !== 'enum')
    return base
  const selection = checkSelection(raw['selection'], base, report)
  const [min, max] = [
    checkBound(raw['min'], 'min', base, report),
    checkBound(raw['max'], 'max', base, report),
  ]
  const { compare }: FieldType = FIELD_TYPES[type]
  if (compare && min !== undefined && max !== undefined && compare(min, max) > 0)
    report('min is greater than max')
  const field = { ...base, selection, min, max }
  return { ...field, default: checkDefault(raw['default'], field, report) }
}

/** Turns `dateOfBirth` into `Date of birth`. */
function deriveTitle(name: string): string {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function checkLength(
  type: FieldTypeName,
  raw: Readonly<Record<string, unknown>>,
  report: ReportFieldError,
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
    report(`length must be a whole number from 1 to ${MAX_TEXT_BYTES}, or { min, max } of such numbers`)
    return { minLength: 0, maxLength: limit }
  }
  return { minLength: min, maxLength: max }
}

function checkDigits(
  type: FieldTypeName,
  raw: Readonly<Record<string, unknown>>,
  report: ReportFieldError,
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

function checkSecret(secret: unknown, report: ReportFieldError): Field['secret'] {
  if (secret === undefined || secret === false) return undefined
  if (secret === 'password') return 'password'
  if (secret !== true) report('secret must be true, false or "password"')
  return 'hidden'
}

function checkComputed(computed: unknown, report: ReportFieldError): Field['computed'] {
  if (computed === undefined) return undefined
  if (typeof computed === 'function') return computed as (record: Readonly<Values>) => unknown
  if (typeof computed === 'string') return compileTemplate(computed)
  report('computed must be a function, or a template such as "{firstName} {lastName}"')
  return undefined
}

function isUniqueReference(type: FieldTypeName, raw: Readonly<Record<string, unknown>>): boolean {
  return type === 'one-to-one' && raw['mappedBy'] === undefined
}

function checkFormerName(renamedFrom: unknown, name: string, report: ReportFieldError): string | undefined {
  if (typeof renamedFrom !== 'string') return undefined
  if (
    renamedFrom === name ||
    !FIELD_NAME.test(renamedFrom) ||
    RESERVED_FIELD_NAMES.has(renamedFrom.toLowerCase())
  )
    report(`renamedFrom: "${renamedFrom}" cannot be its former name`)
  return renamedFrom
}

function checkSelection(
  selection: unknown,
  field: Field,
  report: ReportFieldError,
): readonly Choice[] | undefined {
  if (selection === undefined) {
    if (field.type === 'enum') report('an enum needs a selection')
    return undefined
  }
  if (!Array.isArray(selection) || selection.length === 0) {
    report('selection must be a list of values, or of { value, title }')
    return undefined
  }
  const choices = selection.map((item: unknown): Choice => {
    const { value, title } = isObject(item) ? item : { value: item, title: undefined }
    const parsed = parseValue(field, value)
    if (parsed instanceof FieldError) report(`selection: ${JSON.stringify(value)} ${parsed.message}`)
    const shown = typeof title === 'string' ? title : String(value)
    return { value: value as string | number, title: shown }
  })
  if (new Set(choices.map((choice) => choice.value)).size < choices.length)
    report('selection has a value twice')
  return choices
}

function checkBound(
  bound: unknown,
  option: string,
  field: Field,
  report: ReportFieldError,
): string | number | undefined {
  if (bound === undefined) return undefined
  const value = parseValue(field, bound)
  if (value instanceof FieldError) {
    report(`${option} ${value.message}`)
    return undefined
  }
  return value as string | number
}

function checkDefault(value: unknown, field: Field, report: ReportFieldError): Value | undefined {
  if (value === undefined) return undefined
  if (value === 'now' && ['date', 'time', 'datetime'].includes(field.type)) return value
  const parsed = parseValue(field, value)
  if (parsed instanceof FieldError) {
    report(`default ${parsed.message}`)
    return undefined
  }
  return parsed
}
