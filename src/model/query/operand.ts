// What a field can be asked, and with which values, by the type of the field.
import type { Operator } from './condition.js'
import { parseDecimal } from '../values/decimal.js'
import { Fault, FIELD_TYPES, type Field, type FieldTypeName } from '../values/field-types.js'
import { parseDate } from '../values/date-time.js'
import { isObject, lengthOf, textFault, type Value } from '../values/value.js'

export interface Operand {
  readonly operators: readonly Operator[]
  /** Outside data → a canonical value. The field's limits do not matter: what cannot be stored is simply not found. */
  readonly parse: (input: unknown, field: Field) => Value | Fault
}

export const MAX_TEXT_LENGTH = 10_000
/** The most that a decimal has on each side of the point. */
const MAX_DIGITS = 38

const equality: readonly Operator[] = ['=', '!=', 'in', 'notIn']
const presence: readonly Operator[] = ['isNull', 'notNull']
const order: readonly Operator[] = ['<', '>', '<=', '>=', 'between', 'notBetween']

const unordered = [...equality, ...presence]
const ordered = [...unordered, ...order]

const text: Operand = { operators: [...ordered, 'like', 'notLike'], parse: parseText }
const whole: Operand = { operators: ordered, parse: parseWhole }
const toOne: Operand = { operators: unordered, parse: parseId }
const toMany: Operand = { operators: [...equality, 'isEmpty', 'notEmpty'], parse: parseId }

export const OPERANDS: Readonly<Record<FieldTypeName, Operand>> = {
  string: text,
  text,
  enum: text,
  integer: whole,
  long: whole,
  decimal: { operators: ordered, parse: parseAnyDecimal },
  boolean: { operators: unordered, parse: parseBoolean },
  date: { operators: ordered, parse: FIELD_TYPES.date.parse },
  time: { operators: ordered, parse: FIELD_TYPES.time.parse },
  datetime: { operators: ordered, parse: parseMoment },
  uuid: { operators: unordered, parse: FIELD_TYPES.uuid.parse },
  json: { operators: presence, parse: FIELD_TYPES.json.parse },
  binary: { operators: [], parse: FIELD_TYPES.binary.parse },
  'many-to-one': toOne,
  'one-to-one': toOne,
  'one-to-many': toMany,
  'many-to-many': toMany,
}

function parseText(input: unknown): Value | Fault {
  if (typeof input !== 'string') return new Fault('must be text')
  const fault = textFault(input)
  if (fault !== undefined) return new Fault(fault)
  return lengthOf(input) > MAX_TEXT_LENGTH
    ? new Fault(`must have at most ${MAX_TEXT_LENGTH} characters`)
    : input
}

function parseWhole(input: unknown): Value | Fault {
  const number = typeof input === 'string' && /^[+-]?\d+$/.test(input) ? Number(input) : input
  if (typeof number !== 'number' || Math.trunc(number) !== number) return new Fault('must be a whole number')
  if (!Number.isSafeInteger(number))
    return new Fault(`must be between ${Number.MIN_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER}`)
  return number + 0 // −0 becomes 0
}

function parseAnyDecimal(input: unknown): Value | Fault {
  const parsed = parseDecimal(input, 2 * MAX_DIGITS, MAX_DIGITS)
  return 'fault' in parsed ? new Fault(parsed.fault) : parsed.text
}

/** URLs and filters know texts only. */
function parseBoolean(input: unknown): Value | Fault {
  if (input === true || input === 'true') return true
  return input === false || input === 'false' ? false : new Fault('must be true or false')
}

/** A bare date is its first moment in UTC. */
function parseMoment(input: unknown, field: Field): Value | Fault {
  const date = typeof input === 'string' ? parseDate(input) : undefined
  return date === undefined ? FIELD_TYPES.datetime.parse(input, field) : `${date}T00:00:00.000Z`
}

/** A relation is compared by the id of the neighbour. Names never come here, but for one among ids. */
function parseId(input: unknown): Value | Fault {
  if (typeof input === 'number') return parseWhole(input)
  if (isObject(input) && Object.hasOwn(input, 'id')) return parseWhole(input['id'])
  return new Fault(
    typeof input === 'string'
      ? 'must be an id, as the others are'
      : 'must be an id, an object with an id, or a name',
  )
}
