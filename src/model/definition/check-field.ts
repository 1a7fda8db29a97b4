// Checks one field of a definition, written in TypeScript or JSON, and reports every error.
import { didYouMean } from '../values/did-you-mean.js'
import type { Field, FieldTypeName } from '../values/field.js'
import { FIELD_TYPES, type FieldType } from '../values/field-types.js'
import { isObject, type JsonObject } from '../values/value.js'
import {
  checkBound,
  checkComputed,
  checkDefault,
  checkDigits,
  checkLength,
  checkRelation,
  checkSecret,
  checkSelection,
  checkSequence,
  type ReportError,
} from './check-field-options.js'
import { checkFormat, checkPattern } from './check-rules.js'

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

/** Returns undefined if the definition has no valid type. */
export function checkField(name: string, raw: unknown, report: ReportError): Field | undefined {
  if (!FIELD_NAME.test(name)) {
    report('a field name must be a letter, followed by letters, digits or _, at most 59 characters in total')
  } else if (RESERVED_FIELD_NAMES.has(name.toLowerCase()))
    report('this field name is reserved: choose another one')
  if (!isObject(raw)) {
    report('must be an object such as { "type": "string" }')
    return undefined
  }
  const { type } = raw
  if (typeof type !== 'string' || !FIELD_TYPE_NAMES.includes(type)) {
    const suggestion = typeof type === 'string' ? didYouMean(type, FIELD_TYPE_NAMES) : ''
    report(`type must be one of ${FIELD_TYPE_NAMES.join(', ')}${suggestion}`)
    return undefined
  }
  checkOptions(raw, type as FieldTypeName, report)
  return buildField(name, type as FieldTypeName, raw, report)
}

function checkOptions(raw: JsonObject, type: FieldTypeName, report: ReportError): void {
  const allowed = ALLOWED_OPTIONS[type]
  for (const option of Object.keys(raw)) {
    if (!allowed.has(option) && raw[option] !== undefined)
      report(`unknown option "${option}" for type ${type}${didYouMean(option, allowed)}`)
  }
  for (const option of TEXT_OPTIONS) {
    if (raw[option] !== undefined && typeof raw[option] !== 'string') report(`${option} must be text`)
  }
  for (const option of BOOLEAN_OPTIONS) {
    if (raw[option] !== undefined && typeof raw[option] !== 'boolean')
      report(`${option} must be true or false`)
  }
  if (raw['secret'] === 'password' && raw['default'] !== undefined) report('a password cannot have a default')
  for (const [option, kind] of GENERATED_OPTIONS) {
    if (raw[option] === undefined) continue
    for (const other of ['required', 'default', 'secret']) {
      if (raw[other] !== undefined) report(`a ${kind} cannot have the option "${other}"`)
    }
  }
  if (raw['sequence'] !== undefined && (raw['computed'] ?? raw['selection']) !== undefined)
    report('a sequence cannot be computed or have a selection')
  if (raw['sequence'] !== undefined && (raw['pattern'] ?? raw['format']) !== undefined)
    report('a sequence cannot have a pattern or a format: its prefix, suffix and padding decide its form')
}

function buildField(name: string, type: FieldTypeName, raw: JsonObject, report: ReportError): Field {
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
    pattern: checkPattern(raw['pattern'], report),
    format: checkFormat(raw['format'], report),
    ...checkDigits(type, raw, report),
    default: undefined,
    selection: undefined,
    secret: checkSecret(raw['secret'], report),
    computed: checkComputed(raw['computed'], report),
    isSystem: false,
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
    report('min must be at most max')
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

function isUniqueReference(type: FieldTypeName, raw: JsonObject): boolean {
  return type === 'one-to-one' && raw['mappedBy'] === undefined
}

function checkFormerName(renamedFrom: unknown, name: string, report: ReportError): string | undefined {
  if (typeof renamedFrom !== 'string') return undefined
  if (
    renamedFrom === name ||
    !FIELD_NAME.test(renamedFrom) ||
    RESERVED_FIELD_NAMES.has(renamedFrom.toLowerCase())
  )
    report(`renamedFrom: "${renamedFrom}" must be a valid field name other than the current one`)
  return renamedFrom
}
