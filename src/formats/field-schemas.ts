// The JSON Schema of a value of each field type: as answers contain it, and as a request may send it. Null is added by json-schema.ts.
import type { Field, FieldTypeName } from '../model/values/field.js'
import type { FormatName } from '../model/values/field-rules.js'
import type { JsonObject } from '../model/values/value.js'

export interface FieldSchemas {
  /** The schema of a value in an answer. It has no limits: a value may be older than the limits of the model. */
  readonly output: (field: Field) => JsonObject
  /** The schema of a value in a request. */
  readonly input: (field: Field) => JsonObject
}

const INT32 = { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 }
const SAFE = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
/** A JSON number with more digits may have lost some of them, so the service rejects it. */
const EXACT_NUMBER_LIMIT = 10 ** 15
const MAX_DECIMAL_CHARACTERS = 100

const HOURS_MINUTES = '([01][0-9]|2[0-3]):[0-5][0-9]'
const TIME_PATTERN = `^${HOURS_MINUTES}:[0-5][0-9]$`
const TIME_INPUT_PATTERN = `^${HOURS_MINUTES}(:[0-5][0-9])?$`
/** Excludes the leap second, which the format allows. */
const DATETIME_INPUT_PATTERN = `^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]${HOURS_MINUTES}:[0-5][0-9](\\.[0-9]{1,9})?([Zz]|[+-]${HOURS_MINUTES})$`
const UUID_PATTERN = '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$'

const FORMAT_SCHEMAS: Readonly<Record<FormatName, string>> = { email: 'email', url: 'uri' }

const TEXT: FieldSchemas = {
  output: describeText,
  input: (field) => ({
    ...describeText(field),
    ...(field.secret === 'password' ? { format: 'password' } : {}),
    ...(field.minLength > 0 ? { minLength: field.minLength } : {}),
    ...(field.selection ? {} : { maxLength: field.maxLength }),
    ...describeRules(field),
  }),
}

const RELATED: FieldSchemas = { output: describeRelated, input: describeRelated }

export const FIELD_SCHEMAS: Readonly<Record<FieldTypeName, FieldSchemas>> = {
  string: TEXT,
  text: TEXT,
  enum: TEXT,
  integer: describeInteger('int32', INT32),
  long: describeInteger('int64', SAFE),
  decimal: { output: describeDecimal, input: describeDecimalInput },
  boolean: { output: () => ({ type: 'boolean' }), input: () => ({ type: 'boolean' }) },
  date: {
    output: () => ({ type: 'string', format: 'date' }),
    input: () => ({ type: 'string', format: 'date' }),
  },
  // The format `time` demands an offset, which these times do not have.
  time: {
    output: () => ({ type: 'string', pattern: TIME_PATTERN }),
    input: () => ({ type: 'string', pattern: TIME_INPUT_PATTERN }),
  },
  datetime: {
    output: () => ({ type: 'string', format: 'date-time' }),
    input: () => ({ type: 'string', format: 'date-time', pattern: DATETIME_INPUT_PATTERN }),
  },
  uuid: {
    output: () => ({ type: 'string', format: 'uuid' }),
    input: () => ({ type: 'string', format: 'uuid', pattern: UUID_PATTERN }),
  },
  json: {
    output: describeJson,
    input: describeJson,
  },
  binary: {
    output: describeFile,
    // A client that sends a record back may send null, which is ignored.
    input: describeFile,
  },
  'many-to-one': RELATED,
  'one-to-one': RELATED,
  'one-to-many': RELATED,
  'many-to-many': RELATED,
}

/** An empty text breaks no rule. */
function describeRules({ pattern, format }: Field): JsonObject {
  return {
    ...(pattern ? { pattern: `^(?:${pattern.value})?$` } : {}),
    ...(format ? { format: FORMAT_SCHEMAS[format.value] } : {}),
  }
}

function describeText({ selection }: Field): JsonObject {
  return { type: 'string', ...(selection ? { enum: selection.map(({ value }) => value) } : {}) }
}

function describeInteger(format: string, range: typeof INT32): FieldSchemas {
  const output = ({ selection }: Field): JsonObject => ({
    type: 'integer',
    format,
    ...(selection ? { enum: selection.map(({ value }) => value) } : {}),
  })
  return {
    output,
    input: (field) => ({
      ...output(field),
      ...(field.selection
        ? {}
        : {
            minimum: Math.max(range.minimum, Number(field.min ?? range.minimum)),
            maximum: Math.min(range.maximum, Number(field.max ?? range.maximum)),
          }),
    }),
  }
}

/** Answers have exactly `scale` digits after the point. */
function describeDecimal({ precision, scale }: Field): JsonObject {
  const digits = precision - scale
  const whole = digits === 0 ? '0' : `(0|[1-9][0-9]{0,${digits - 1}})`
  return { type: 'string', pattern: `^-?${whole}${scale === 0 ? '' : `\\.[0-9]{${scale}}`}$` }
}

/** The pattern applies to texts, the bounds to numbers. */
function describeDecimalInput({ precision, scale, min, max }: Field): JsonObject {
  const digits = precision - scale
  const whole = digits === 0 ? '0+' : `0*[0-9]{1,${digits}}`
  const limit = Math.min(EXACT_NUMBER_LIMIT, 10 ** digits)
  return {
    type: ['string', 'number'],
    pattern: `^[+-]?${whole}${scale === 0 ? '' : `(\\.[0-9]{1,${scale}})?`}$`,
    maxLength: MAX_DECIMAL_CHARACTERS,
    ...(min === undefined ? { exclusiveMinimum: -limit } : { minimum: Number(min) }),
    ...(max === undefined ? { exclusiveMaximum: limit } : { maximum: Number(max) }),
  }
}

/** Any JSON. A required field cannot be null. */
function describeJson({ required }: Field): JsonObject {
  return required ? { type: ['object', 'array', 'string', 'number', 'boolean'] } : {}
}

function describeFile(): JsonObject {
  return { type: 'null', description: 'The content of the file has its own requests.' }
}

function describeRelated(): never {
  throw new Error('a relation has the schema of its target: see json-schema.ts')
}
