import { counted } from './plural.js'
import { compareDecimals, parseDecimal } from './decimal.js'
import { parseDate, parseDatetime, parseTime } from './date-time.js'
import { jsonFault, lengthOf, textFault, type Json, type Value, type Values } from './value.js'

export const DEFAULT_STRING_LENGTH = 255
export const MAX_TEXT_BYTES = 1_048_576
/** How many characters fit into an index entry on both engines, of all its fields together. */
export const MAX_INDEXED_LENGTH = 600
const INTEGER_LIMIT = 2 ** 31
/** Of a unit of UTF-16 in UTF-8. */
const MOST_BYTES = 3

export type FieldTypeName =
  | 'string'
  | 'text'
  | 'integer'
  | 'long'
  | 'decimal'
  | 'boolean'
  | 'date'
  | 'time'
  | 'datetime'
  | 'uuid'
  | 'enum'
  | 'json'
  | 'binary'
  | RelationTypeName

export type RelationTypeName = 'many-to-one' | 'one-to-one' | 'one-to-many' | 'many-to-many'

/** How a column keeps a type; each engine has its own word for each. */
export type Storage =
  | 'text'
  | 'integer'
  | 'boolean'
  | 'decimal'
  | 'date'
  | 'time'
  | 'datetime'
  | 'uuid'
  | 'json'
  | 'file'
  | 'none'

export interface Choice {
  readonly value: string | number
  readonly title: string
}

/** A field of a checked model. `FieldDefinition` in `definition.ts` is what people write. */
export interface Field {
  readonly name: string
  readonly type: FieldTypeName
  readonly title: string
  readonly help: string | undefined
  readonly required: boolean
  readonly unique: boolean
  readonly min: string | number | undefined
  readonly max: string | number | undefined
  readonly minLength: number
  readonly maxLength: number
  readonly precision: number
  readonly scale: number
  readonly default: Value | undefined
  readonly selection: readonly Choice[] | undefined
  /** Write-only. A password is hashed before it is stored. */
  readonly secret: 'hidden' | 'password' | undefined
  readonly computed: ((record: Readonly<Values>) => unknown) | undefined
  /** Set by the service, whatever a client sends. */
  readonly kept: boolean
  /** The name this field had before. */
  readonly was: string | undefined
  /** Whether a copy of a record begins with the same value. */
  readonly copied: boolean
  /** Numbers given by the service, one after the other. */
  readonly sequence: Sequence | undefined
  readonly relation: Relation | undefined
}

/** A field that says nothing of itself but what it is. */
export const BLANK: Omit<Field, 'name' | 'type' | 'title'> = {
  ...{ help: undefined, required: false, unique: false, min: undefined, max: undefined },
  ...{ minLength: 0, maxLength: 0, precision: 0, scale: 0, default: undefined, selection: undefined },
  ...{ secret: undefined, computed: undefined, kept: false, was: undefined, copied: true },
  ...{ sequence: undefined, relation: undefined },
}

export interface Sequence {
  readonly prefix: string
  readonly suffix: string
  /** At least so many digits. */
  readonly padding: number
  /** The first number. */
  readonly next: number
}

/** How records of one model hang together with those of another. */
export interface Relation {
  /** The name of the other model. */
  readonly target: string
  readonly isList: boolean
  /** The field of the target that holds the relation; undefined where this one does. */
  readonly mappedBy: string | undefined
  /** A list that is part of the record: shown with it, replaced with it. */
  readonly owned: boolean
  /** What a list is ordered by, as people write it, before the id. */
  readonly orderBy?: readonly string[]
}

/** What is wrong with a value, to be read behind the field's name. */
export class Fault {
  constructor(readonly message: string) {}
}

export type FieldOption =
  | 'required'
  | 'unique'
  | 'min'
  | 'max'
  | 'length'
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
  /** The options that mean something for this type, besides title, help and was. */
  readonly options: readonly FieldOption[]
  /** Outside data → the canonical value. Never sees null. */
  readonly parse: (input: unknown, field: Field) => Value | Fault
  /** −1, 0 or 1, for types that have min and max. */
  readonly compare?: (a: Value, b: Value) => number
}

const scalar = ['required', 'unique', 'default', 'computed'] as const
const ranged = [...scalar, 'min', 'max'] as const

export const FIELD_TYPES = {
  string: {
    storage: 'text',
    options: [...scalar, 'length', 'selection', 'secret', 'sequence'],
    parse: parseText,
  },
  text: {
    storage: 'text',
    options: ['required', 'default', 'computed', 'length', 'secret'],
    parse: parseText,
  },
  enum: { storage: 'text', options: [...scalar, 'selection'], parse: parseText },
  integer: {
    storage: 'integer',
    options: [...ranged, 'selection'],
    parse: (input) => parseInteger(input, -INTEGER_LIMIT, INTEGER_LIMIT - 1),
    compare: compareNumbers,
  },
  long: {
    storage: 'integer',
    options: [...ranged, 'selection'],
    parse: (input) => parseInteger(input, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    compare: compareNumbers,
  },
  decimal: {
    storage: 'decimal',
    options: [...ranged, 'precision', 'scale'],
    parse: (input, field) => {
      const parsed = parseDecimal(input, field.precision, field.scale)
      return 'fault' in parsed ? new Fault(parsed.fault) : parsed.text
    },
    compare: (a, b) => compareDecimals(a as string, b as string),
  },
  boolean: {
    storage: 'boolean',
    options: scalar,
    parse: (input) => (typeof input === 'boolean' ? input : new Fault('must be true or false')),
  },
  date: {
    storage: 'date',
    options: ranged,
    parse: spelled(parseDate, 'must be a date such as "2024-01-31"'),
    compare: compareTexts,
  },
  time: {
    storage: 'time',
    options: ranged,
    parse: spelled(parseTime, 'must be a time such as "13:45:00"'),
    compare: compareTexts,
  },
  datetime: {
    storage: 'datetime',
    options: ranged,
    parse: spelled(parseDatetime, 'must be a date and time with an offset, such as "2024-01-31T13:45:00Z"'),
    compare: compareTexts,
  },
  uuid: { storage: 'uuid', options: scalar, parse: spelled(parseUuid, 'must be a UUID') },
  json: { storage: 'json', options: ['required', 'default', 'computed'], parse: parseJson },
  binary: {
    // Which file it is; the content lies elsewhere.
    storage: 'file',
    options: [],
    parse: () => new Fault('is binary: its content does not travel as JSON'),
  },
  'many-to-one': {
    storage: 'integer',
    options: ['required', 'unique', 'target'],
    parse: () => new Fault('is a relation'),
  },
  'one-to-one': {
    storage: 'integer',
    options: ['required', 'target', 'mappedBy'],
    parse: () => new Fault('is a relation'),
  },
  'one-to-many': {
    storage: 'none',
    options: ['target', 'mappedBy', 'owned', 'orderBy'],
    parse: () => new Fault('is a relation'),
  },
  'many-to-many': {
    storage: 'none',
    options: ['target', 'mappedBy', 'orderBy'],
    parse: () => new Fault('is a relation'),
  },
} as const satisfies Record<FieldTypeName, FieldType>

/** How the column of this field keeps it; the other side of a relation has none. */
export function storageOf(field: Field): Storage {
  return field.relation?.mappedBy === undefined ? FIELD_TYPES[field.type].storage : 'none'
}

/** Whether its column can stand in an index. */
export function isIndexable(field: Field): boolean {
  return !['json', 'file', 'none'].includes(storageOf(field)) && field.secret === undefined
}

/** Outside data → the canonical value of this field, or what is wrong with it. */
export function parseValue(field: Field, input: unknown): Value | Fault {
  const type: FieldType = FIELD_TYPES[field.type]
  const value = type.parse(input, field)
  if (value instanceof Fault) return value
  if (field.selection && !field.selection.some((choice) => choice.value === value)) {
    return new Fault(
      `must be one of ${field.selection.map((choice) => JSON.stringify(choice.value)).join(', ')}`,
    )
  }
  if (!type.compare) return value
  if (field.min !== undefined && type.compare(value, field.min) < 0) {
    return new Fault(`must be at least ${field.min}`)
  }
  if (field.max !== undefined && type.compare(value, field.max) > 0) {
    return new Fault(`must be at most ${field.max}`)
  }
  return value
}

function parseText(input: unknown, field: Field): Value | Fault {
  if (typeof input !== 'string') return new Fault('must be text')
  const fault = textFault(input)
  if (fault !== undefined) return new Fault(fault)
  if (input.length * MOST_BYTES > MAX_TEXT_BYTES && Buffer.byteLength(input) > MAX_TEXT_BYTES)
    return new Fault(`must be at most ${MAX_TEXT_BYTES} bytes of UTF-8`)
  // Characters are counted only where it matters: there are at most as many as units of UTF-16, and at least half as many.
  if (input.length <= field.maxLength && input.length >= 2 * field.minLength) return input
  const length = lengthOf(input)
  if (length > field.maxLength) return new Fault(`must have at most ${field.maxLength} characters`)
  if (length < field.minLength)
    return new Fault(`must have at least ${counted(field.minLength, 'character')}`)
  return input
}

function parseInteger(input: unknown, least: number, most: number): Value | Fault {
  if (typeof input !== 'number' || !Number.isInteger(input)) return new Fault('must be a whole number')
  if (input < least || input > most) return new Fault(`must be between ${least} and ${most}`)
  return input + 0 // −0 becomes 0
}

function parseUuid(input: string): string | undefined {
  const lower = input.toLowerCase()
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(lower) ? lower : undefined
}

function parseJson(input: unknown): Value | Fault {
  const fault = jsonFault(input)
  if (fault !== undefined) return new Fault(fault)
  const text = JSON.stringify(input)
  if (Buffer.byteLength(text) > MAX_TEXT_BYTES)
    return new Fault(`must be at most ${MAX_TEXT_BYTES} bytes of JSON`)
  return JSON.parse(text) as Json
}

function spelled(parse: (text: string) => string | undefined, fault: string): FieldType['parse'] {
  return (input) => (typeof input === 'string' ? parse(input) : undefined) ?? new Fault(fault)
}

function compareNumbers(a: Value, b: Value): number {
  return Number(a) - Number(b)
}

function compareTexts(a: Value, b: Value): number {
  if (a === b) return 0
  return (a as string) < (b as string) ? -1 : 1
}
