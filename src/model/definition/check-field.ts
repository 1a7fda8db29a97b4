// One field of a definition, from TypeScript or JSON → a checked Field, with every fault named.
import {
  DEFAULT_STRING_LENGTH,
  FIELD_TYPES,
  Fault,
  MAX_TEXT_BYTES,
  parseValue,
  type Choice,
  type Field,
  type FieldType,
  type FieldTypeName,
} from '../values/field-types.js'
import { checkRelation } from './check-relation.js'
import { MAX_PRECISION } from '../values/decimal.js'
import { didYouMean } from '../values/did-you-mean.js'
import { computeByTemplate } from '../values/template.js'
import { checkSequence } from './check-sequence.js'
import { isCount, isObject, type Value, type Values } from '../values/value.js'

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]{0,58}$/
// Compared in lower case: SQLite does not tell the cases of a column apart. PostgreSQL has columns of its own in every table.
const RESERVED = new Set(
  [
    ...['id', 'version', 'createdOn', 'createdBy', 'updatedOn', 'updatedBy', 'archived'],
    ...['prototype', 'selected', ...Object.getOwnPropertyNames(Object.prototype)],
    ...['ctid', 'xmin', 'xmax', 'cmin', 'cmax', 'tableoid'],
  ].map((name) => name.toLowerCase()),
)
const DEFINABLE = Object.keys(FIELD_TYPES)
const FREE_OPTIONS = ['type', 'title', 'help', 'was', 'copy'] as const
const ALLOWED = Object.fromEntries(
  Object.entries(FIELD_TYPES).map(([type, { options }]) => [
    type,
    new Set<string>([...options, ...FREE_OPTIONS]),
  ]),
) as unknown as Readonly<Record<FieldTypeName, ReadonlySet<string>>>
const TEXTUAL = ['title', 'help', 'was']
const TOGGLES = ['required', 'unique', 'copy']
const WORKED_OUT = [
  ['computed', 'computed field'],
  ['sequence', 'sequence'],
] as const

type Report = (fault: string) => void

/** Undefined if there is not even a type to go by. */
export function checkField(name: string, raw: unknown, report: Report): Field | undefined {
  if (!FIELD_NAME.test(name)) {
    report('a field name is a letter, then letters, digits or _, at most 59 characters')
  } else if (RESERVED.has(name.toLowerCase())) report('this name is taken by the service')
  if (!isObject(raw)) {
    report('must be an object such as { "type": "string" }')
    return undefined
  }
  const { type } = raw
  if (typeof type !== 'string' || !DEFINABLE.includes(type)) {
    const meant = typeof type === 'string' ? didYouMean(type, DEFINABLE) : ''
    report(`type must be one of ${DEFINABLE.join(', ')}${meant}`)
    return undefined
  }
  checkOptions(raw, type as FieldTypeName, report)
  return build(name, type as FieldTypeName, raw, report)
}

function checkOptions(raw: Readonly<Record<string, unknown>>, type: FieldTypeName, report: Report): void {
  const allowed = ALLOWED[type]
  for (const option of Object.keys(raw)) {
    if (!allowed.has(option) && raw[option] !== undefined)
      report(`${type} has no option "${option}"${didYouMean(option, allowed)}`)
  }
  for (const option of TEXTUAL) {
    if (raw[option] !== undefined && typeof raw[option] !== 'string') report(`${option} must be text`)
  }
  for (const option of TOGGLES) {
    if (raw[option] !== undefined && typeof raw[option] !== 'boolean')
      report(`${option} must be true or false`)
  }
  if (raw['secret'] === 'password' && raw['default'] !== undefined) report('a password has no default')
  for (const [option, kind] of WORKED_OUT) {
    if (raw[option] === undefined) continue
    for (const other of ['required', 'default', 'secret']) {
      if (raw[other] !== undefined) report(`a ${kind} has no ${other}`)
    }
  }
  if (raw['sequence'] !== undefined && (raw['computed'] ?? raw['selection']) !== undefined)
    report('a sequence is neither computed nor a selection')
}

function build(
  name: string,
  type: FieldTypeName,
  raw: Readonly<Record<string, unknown>>,
  report: Report,
): Field {
  const sequence = checkSequence(raw['sequence'], report)
  const bare: Field = {
    name,
    type,
    title: typeof raw['title'] === 'string' ? raw['title'] : titleOf(name),
    help: typeof raw['help'] === 'string' ? raw['help'] : undefined,
    required: raw['required'] === true,
    // No number is given twice, and a record has one partner.
    unique: raw['unique'] === true || sequence !== undefined || isSoleReference(type, raw),
    min: undefined,
    max: undefined,
    ...checkLength(type, raw, report),
    ...checkDigits(type, raw, report),
    default: undefined,
    selection: undefined,
    secret: checkSecret(raw['secret'], report),
    computed: checkComputed(raw['computed'], report),
    kept: false,
    was: checkFormerName(raw['was'], name, report),
    copied: raw['copy'] !== false,
    sequence,
    relation: checkRelation(type, raw, report),
  }
  const { selection: choices, min: least, max: most, default: usual } = raw
  // Most fields say none of these.
  if ([choices, least, most, usual].every((option) => option === undefined) && type !== 'enum') return bare
  const selection = checkSelection(raw['selection'], bare, report)
  const [min, max] = [
    checkBound(raw['min'], 'min', bare, report),
    checkBound(raw['max'], 'max', bare, report),
  ]
  const { compare }: FieldType = FIELD_TYPES[type]
  if (compare && min !== undefined && max !== undefined && compare(min, max) > 0)
    report('min is greater than max')
  const field = { ...bare, selection, min, max }
  return { ...field, default: checkDefault(raw['default'], field, report) }
}

/** `dateOfBirth` → `Date of birth` */
function titleOf(name: string): string {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function checkLength(
  type: FieldTypeName,
  raw: Readonly<Record<string, unknown>>,
  report: Report,
): Pick<Field, 'minLength' | 'maxLength'> {
  // A computed text has no shorter limit than a text: what it is made of was within limits already.
  const isShort = (type === 'string' || type === 'enum') && raw['computed'] === undefined
  const most = isShort ? DEFAULT_STRING_LENGTH : MAX_TEXT_BYTES
  const { length } = raw
  if (length === undefined) return { minLength: 0, maxLength: most }
  const { min = 0, max = most } = isObject(length) ? length : { max: length }
  if (!isCount(min) || !isCount(max) || max < 1 || max > MAX_TEXT_BYTES || min > max) {
    report(`length must be a whole number from 1 to ${MAX_TEXT_BYTES}, or { min, max } of such numbers`)
    return { minLength: 0, maxLength: most }
  }
  return { minLength: min, maxLength: max }
}

function checkDigits(
  type: FieldTypeName,
  raw: Readonly<Record<string, unknown>>,
  report: Report,
): Pick<Field, 'precision' | 'scale'> {
  const { precision = 20, scale = 2 } = raw
  if (type !== 'decimal') return { precision: 0, scale: 0 }
  if (!isCount(precision) || precision < 1 || precision > MAX_PRECISION) {
    report(`precision must be a whole number from 1 to ${MAX_PRECISION}`)
  } else if (!isCount(scale) || scale > precision) {
    report('scale must be a whole number from 0 to the precision')
  } else return { precision, scale }
  return { precision: MAX_PRECISION, scale: 0 }
}

function checkSecret(secret: unknown, report: Report): Field['secret'] {
  if (secret === undefined || secret === false) return undefined
  if (secret === 'password') return 'password'
  if (secret !== true) report('secret must be true, false or "password"')
  return 'hidden'
}

function checkComputed(computed: unknown, report: Report): Field['computed'] {
  if (computed === undefined) return undefined
  if (typeof computed === 'function') return computed as (record: Readonly<Values>) => unknown
  if (typeof computed === 'string') return computeByTemplate(computed)
  report('computed must be a function, or a template such as "{firstName} {lastName}"')
  return undefined
}

function isSoleReference(type: FieldTypeName, raw: Readonly<Record<string, unknown>>): boolean {
  return type === 'one-to-one' && raw['mappedBy'] === undefined
}

function checkFormerName(was: unknown, name: string, report: Report): string | undefined {
  if (typeof was !== 'string') return undefined
  if (was === name || !FIELD_NAME.test(was) || RESERVED.has(was.toLowerCase()))
    report(`was: "${was}" cannot be its former name`)
  return was
}

function checkSelection(selection: unknown, field: Field, report: Report): readonly Choice[] | undefined {
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
    if (parsed instanceof Fault) report(`selection: ${JSON.stringify(value)} ${parsed.message}`)
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
  report: Report,
): string | number | undefined {
  if (bound === undefined) return undefined
  const value = parseValue(field, bound)
  if (value instanceof Fault) {
    report(`${option} ${value.message}`)
    return undefined
  }
  return value as string | number
}

function checkDefault(value: unknown, field: Field, report: Report): Value | undefined {
  if (value === undefined) return undefined
  if (value === 'now' && ['date', 'time', 'datetime'].includes(field.type)) return value
  const parsed = parseValue(field, value)
  if (parsed instanceof Fault) {
    report(`default ${parsed.message}`)
    return undefined
  }
  return parsed
}
