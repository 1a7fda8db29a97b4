// The operators of each field type, and the parsing of their operands.
import type { Operator } from './condition.js'
import { parseDecimal } from '../values/decimal.js'
import { FieldError, type Field, type FieldTypeName } from '../values/field.js'
import { FIELD_TYPES } from '../values/field-types.js'
import { parseDate } from '../values/date-time.js'
import { isObject, countCharacters, validateText, type Value } from '../values/value.js'

export interface OperandType {
  readonly operators: readonly Operator[]
  /** Converts client data to a canonical value. Ignores the limits of the field: a value beyond them simply matches nothing. */
  readonly parse: (input: unknown, field: Field) => Value | FieldError
}

export const MAX_OPERAND_CHARACTERS = 10_000
/** The maximum number of digits on each side of the decimal point. */
const MAX_OPERAND_DIGITS = 38

const EQUALITY_OPERATORS: readonly Operator[] = ['=', '!=', 'in', 'notIn']
const NULL_OPERATORS: readonly Operator[] = ['isNull', 'notNull']
const ORDER_OPERATORS: readonly Operator[] = ['<', '>', '<=', '>=', 'between', 'notBetween']

const UNORDERED_OPERATORS = [...EQUALITY_OPERATORS, ...NULL_OPERATORS]
const ORDERED_OPERATORS = [...UNORDERED_OPERATORS, ...ORDER_OPERATORS]

const TEXT_OPERAND: OperandType = {
  operators: [...ORDERED_OPERATORS, 'like', 'notLike'],
  parse: parseTextOperand,
}
const INTEGER_OPERAND: OperandType = { operators: ORDERED_OPERATORS, parse: parseIntegerOperand }
const TO_ONE_OPERAND: OperandType = { operators: UNORDERED_OPERATORS, parse: parseIdOperand }
const TO_MANY_OPERAND: OperandType = {
  operators: [...EQUALITY_OPERATORS, 'isEmpty', 'notEmpty'],
  parse: parseIdOperand,
}

export const OPERAND_TYPES: Readonly<Record<FieldTypeName, OperandType>> = {
  string: TEXT_OPERAND,
  text: TEXT_OPERAND,
  enum: TEXT_OPERAND,
  integer: INTEGER_OPERAND,
  long: INTEGER_OPERAND,
  decimal: { operators: ORDERED_OPERATORS, parse: parseDecimalOperand },
  boolean: { operators: UNORDERED_OPERATORS, parse: parseBooleanOperand },
  date: { operators: ORDERED_OPERATORS, parse: FIELD_TYPES.date.parse },
  time: { operators: ORDERED_OPERATORS, parse: FIELD_TYPES.time.parse },
  datetime: { operators: ORDERED_OPERATORS, parse: parseDatetimeOperand },
  uuid: { operators: UNORDERED_OPERATORS, parse: FIELD_TYPES.uuid.parse },
  json: { operators: NULL_OPERATORS, parse: FIELD_TYPES.json.parse },
  binary: { operators: [], parse: FIELD_TYPES.binary.parse },
  'many-to-one': TO_ONE_OPERAND,
  'one-to-one': TO_ONE_OPERAND,
  'one-to-many': TO_MANY_OPERAND,
  'many-to-many': TO_MANY_OPERAND,
}

function parseTextOperand(input: unknown): Value | FieldError {
  if (typeof input !== 'string') return new FieldError('must be text')
  const error = validateText(input)
  if (error !== undefined) return new FieldError(error)
  return countCharacters(input) > MAX_OPERAND_CHARACTERS
    ? new FieldError(`must have at most ${MAX_OPERAND_CHARACTERS} characters`)
    : input
}

function parseIntegerOperand(input: unknown): Value | FieldError {
  const number = typeof input === 'string' && /^[+-]?\d+$/.test(input) ? Number(input) : input
  if (typeof number !== 'number' || Math.trunc(number) !== number)
    return new FieldError('must be a whole number')
  if (!Number.isSafeInteger(number))
    return new FieldError(`must be between ${Number.MIN_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER}`)
  return number + 0 // Turns −0 into 0.
}

function parseDecimalOperand(input: unknown): Value | FieldError {
  const parsed = parseDecimal(input, 2 * MAX_OPERAND_DIGITS, MAX_OPERAND_DIGITS)
  return 'error' in parsed ? new FieldError(parsed.error) : parsed.text
}

/** Accepts texts, too: values in URLs and filters are texts. */
function parseBooleanOperand(input: unknown): Value | FieldError {
  if (input === true || input === 'true') return true
  return input === false || input === 'false' ? false : new FieldError('must be true or false')
}

/** A date means midnight UTC. */
function parseDatetimeOperand(input: unknown, field: Field): Value | FieldError {
  const date = typeof input === 'string' ? parseDate(input) : undefined
  return date === undefined ? FIELD_TYPES.datetime.parse(input, field) : `${date}T00:00:00.000Z`
}

/** Compares a relation by the id of the related record. A text gets here only in a list that also has ids. */
function parseIdOperand(input: unknown): Value | FieldError {
  if (typeof input === 'number') return parseIntegerOperand(input)
  if (isObject(input) && Object.hasOwn(input, 'id')) return parseIntegerOperand(input['id'])
  return new FieldError(
    typeof input === 'string'
      ? 'must be an id, because the other values of the list are ids'
      : 'must be an id, an object with an id, or a name',
  )
}
