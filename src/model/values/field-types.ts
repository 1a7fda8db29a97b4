// The table of field types. A new field type is added here.
import { pluralize } from './plural.js'
import { compareDecimals, parseDecimal } from './decimal.js'
import { parseDate, parseDatetime, parseTime } from './date-time.js'
import { FieldError, type Field, type FieldTypeName, type Storage } from './field.js'
import { validateJson, countCharacters, validateText, type Json, type Value } from './value.js'

export const DEFAULT_STRING_CHARACTERS = 255
export const MAX_TEXT_BYTES = 1_048_576
/** An index entry holds at most this many characters on both engines, summed over its text fields. */
export const MAX_INDEXED_CHARACTERS = 600
const INTEGER_LIMIT = 2 ** 31
/** A UTF-16 code unit takes at most this many bytes in UTF-8. */
const MAX_UTF8_BYTES_PER_UNIT = 3

export type FieldOption =
  | 'required'
  | 'unique'
  | 'min'
  | 'max'
  | 'length'
  | 'pattern'
  | 'format'
  | 'precision'
  | 'scale'
  | 'default'
  | 'selection'
  | 'secret'
  | 'computed'
  | 'sequence'
  | 'target'
  | 'mappedBy'
  | 'owned'
  | 'orderBy'

export interface FieldType {
  readonly storage: Storage
  /** The options that this type allows, besides title, help, renamedFrom and copy. */
  readonly options: readonly FieldOption[]
  /** Converts client data to the canonical value. Never receives null. */
  readonly parse: (input: unknown, field: Field) => Value | FieldError
  /** Orders two values by the sign of the result. Types with min and max have it. */
  readonly compare?: (a: Value, b: Value) => number
}

const SCALAR_OPTIONS = ['required', 'unique', 'default', 'computed'] as const
const RANGE_OPTIONS = [...SCALAR_OPTIONS, 'min', 'max'] as const

export const FIELD_TYPES = {
  string: {
    storage: 'text',
    options: [...SCALAR_OPTIONS, 'length', 'pattern', 'format', 'selection', 'secret', 'sequence'],
    parse: parseTextValue,
  },
  text: {
    storage: 'text',
    options: ['required', 'default', 'computed', 'length', 'pattern', 'format', 'secret'],
    parse: parseTextValue,
  },
  enum: { storage: 'text', options: [...SCALAR_OPTIONS, 'selection'], parse: parseTextValue },
  integer: {
    storage: 'integer',
    options: [...RANGE_OPTIONS, 'selection'],
    parse: (input) => parseIntegerValue(input, -INTEGER_LIMIT, INTEGER_LIMIT - 1),
    compare: compareNumbers,
  },
  long: {
    storage: 'integer',
    options: [...RANGE_OPTIONS, 'selection'],
    parse: (input) => parseIntegerValue(input, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    compare: compareNumbers,
  },
  decimal: {
    storage: 'decimal',
    options: [...RANGE_OPTIONS, 'precision', 'scale'],
    parse: (input, field) => {
      const parsed = parseDecimal(input, field.precision, field.scale)
      return 'error' in parsed ? new FieldError(parsed.error) : parsed.text
    },
    compare: (a, b) => compareDecimals(a as string, b as string),
  },
  boolean: {
    storage: 'boolean',
    options: SCALAR_OPTIONS,
    parse: (input) => (typeof input === 'boolean' ? input : new FieldError('must be true or false')),
  },
  date: {
    storage: 'date',
    options: RANGE_OPTIONS,
    parse: parseWith(parseDate, 'must be a date such as "2024-01-31"'),
    compare: compareTexts,
  },
  time: {
    storage: 'time',
    options: RANGE_OPTIONS,
    parse: parseWith(parseTime, 'must be a time such as "13:45:00"'),
    compare: compareTexts,
  },
  datetime: {
    storage: 'datetime',
    options: RANGE_OPTIONS,
    parse: parseWith(parseDatetime, 'must be a date and time with an offset, such as "2024-01-31T13:45:00Z"'),
    compare: compareTexts,
  },
  uuid: { storage: 'uuid', options: SCALAR_OPTIONS, parse: parseWith(parseUuidText, 'must be a UUID') },
  json: { storage: 'json', options: ['required', 'default', 'computed'], parse: parseJsonValue },
  binary: {
    // The column stores a reference to the file; the blob store holds its content.
    storage: 'file',
    options: [],
    parse: () => new FieldError('is a binary field: send its content with an upload, not as JSON'),
  },
  'many-to-one': {
    storage: 'integer',
    options: ['required', 'unique', 'target'],
    parse: () => new FieldError('is a relation'),
  },
  'one-to-one': {
    storage: 'integer',
    options: ['required', 'target', 'mappedBy'],
    parse: () => new FieldError('is a relation'),
  },
  'one-to-many': {
    storage: 'none',
    options: ['target', 'mappedBy', 'owned', 'orderBy'],
    parse: () => new FieldError('is a relation'),
  },
  'many-to-many': {
    storage: 'none',
    options: ['target', 'mappedBy', 'orderBy'],
    parse: () => new FieldError('is a relation'),
  },
} as const satisfies Record<FieldTypeName, FieldType>

/** Returns the storage of the field's column. An inverse relation has no column. */
export function getStorage(field: Field): Storage {
  return field.relation?.mappedBy === undefined ? FIELD_TYPES[field.type].storage : 'none'
}

export function isIndexable(field: Field): boolean {
  return !['json', 'file', 'none'].includes(getStorage(field)) && field.secret === undefined
}

/** Converts client data to the canonical value of this field and checks its selection, rules and bounds. */
export function parseValue(field: Field, input: unknown): Value | FieldError {
  const type: FieldType = FIELD_TYPES[field.type]
  const value = type.parse(input, field)
  if (value instanceof FieldError) return value
  if (field.selection && !field.selection.some((choice) => choice.value === value)) {
    return new FieldError(
      `must be one of ${field.selection.map((choice) => JSON.stringify(choice.value)).join(', ')}`,
    )
  }
  if (field.pattern !== undefined || field.format !== undefined) {
    const error = findRuleError(field, value)
    if (error !== undefined) return new FieldError(error)
  }
  if (!type.compare) return value
  if (field.min !== undefined && type.compare(value, field.min) < 0) {
    return new FieldError(`must be at least ${field.min}`)
  }
  if (field.max !== undefined && type.compare(value, field.max) > 0) {
    return new FieldError(`must be at most ${field.max}`)
  }
  return value
}

/** An empty text breaks no rule, like null. */
function findRuleError({ pattern, format }: Field, value: Value): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  return pattern?.validate(value) ?? format?.validate(value)
}

function parseTextValue(input: unknown, field: Field): Value | FieldError {
  if (typeof input !== 'string') return new FieldError('must be text')
  const error = validateText(input)
  if (error !== undefined) return new FieldError(error)
  if (input.length * MAX_UTF8_BYTES_PER_UNIT > MAX_TEXT_BYTES && Buffer.byteLength(input) > MAX_TEXT_BYTES)
    return new FieldError(`must be at most ${MAX_TEXT_BYTES} bytes of UTF-8`)
  // A text has at most as many characters as UTF-16 code units and at least half as many, so most texts need no counting.
  if (input.length <= field.maxLength && input.length >= 2 * field.minLength) return input
  const length = countCharacters(input)
  if (length > field.maxLength) return new FieldError(`must have at most ${field.maxLength} characters`)
  if (length < field.minLength)
    return new FieldError(`must have at least ${pluralize(field.minLength, 'character')}`)
  return input
}

function parseIntegerValue(input: unknown, min: number, max: number): Value | FieldError {
  if (typeof input !== 'number' || !Number.isInteger(input)) return new FieldError('must be a whole number')
  if (input < min || input > max) return new FieldError(`must be between ${min} and ${max}`)
  return input + 0 // Turns −0 into 0.
}

function parseUuidText(input: string): string | undefined {
  const lower = input.toLowerCase()
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(lower) ? lower : undefined
}

function parseJsonValue(input: unknown): Value | FieldError {
  const error = validateJson(input)
  if (error !== undefined) return new FieldError(error)
  const text = JSON.stringify(input)
  if (Buffer.byteLength(text) > MAX_TEXT_BYTES)
    return new FieldError(`must be at most ${MAX_TEXT_BYTES} bytes of JSON`)
  return JSON.parse(text) as Json
}

function parseWith(parse: (text: string) => string | undefined, error: string): FieldType['parse'] {
  return (input) => (typeof input === 'string' ? parse(input) : undefined) ?? new FieldError(error)
}

function compareNumbers(a: Value, b: Value): number {
  return Number(a) - Number(b)
}

function compareTexts(a: Value, b: Value): number {
  if (a === b) return 0
  return (a as string) < (b as string) ? -1 : 1
}
