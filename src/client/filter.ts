// Turns a filter object into the filter language. A value always becomes one literal, and a key one path, so neither can change the
// meaning of the rest.

/** Text of the filter language, or an object such as `{ state: 'open', age: { '>=': 18 } }`. */
export type FilterInput = string | FilterObject
export interface FilterObject {
  readonly [path: string]: unknown
}

const PATH = /^[A-Za-z_]\w*(?:\[\])?(?:\.[A-Za-z_]\w*(?:\[\])?)*$/
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

// `id` has a value in every record.
const ALWAYS = 'self.id not in ()'
const NEVER = 'self.id in ()'

type OperatorWriter = (path: string, value: unknown) => string

/** Writers by operator: the names of the search in JSON, as in docs/reference/filters.md. */
const OPERATORS: Readonly<Record<string, OperatorWriter>> = {
  '=': (path, value) => (value === null ? `${path} is null` : `${path} = ${writeValue(path, value)}`),
  '!=': (path, value) => (value === null ? `${path} is not null` : `${path} != ${writeValue(path, value)}`),
  ...Object.fromEntries(
    ['<', '<=', '>', '>=', 'like'].map((sign): [string, OperatorWriter] => [
      sign,
      (path, value) => `${path} ${sign} ${writeValue(path, value)}`,
    ]),
  ),
  notLike: (path, value) => `${path} not like ${writeValue(path, value)}`,
  in: (path, value) => writeMembership(path, value, false),
  notIn: (path, value) => writeMembership(path, value, true),
  between: (path, value) => `${path} between ${writeRange(path, value)}`,
  notBetween: (path, value) => `${path} not between ${writeRange(path, value)}`,
  isNull: (path, value) => `${path} is ${readFlag(path, value) ? '' : 'not '}null`,
  notNull: (path, value) => `${path} is ${readFlag(path, value) ? 'not ' : ''}null`,
  isEmpty: (path, value) => `${path} is ${readFlag(path, value) ? '' : 'not '}empty`,
  notEmpty: (path, value) => `${path} is ${readFlag(path, value) ? 'not ' : ''}empty`,
}

const GROUPS: Readonly<Record<string, (value: unknown) => string>> = {
  and: (value) => joinConditions(listGroup('and', value), 'and', ALWAYS),
  or: (value) => joinConditions(listGroup('or', value), 'or', NEVER),
  not: (value) => `not (${writeObject('not', value)})`,
}

/** True for a key of a condition such as `like`. Any other key of an object is part of a path. */
export function isFilterOperator(name: string): boolean {
  return Object.hasOwn(OPERATORS, name)
}

export function isFilterGroup(name: string): boolean {
  return Object.hasOwn(GROUPS, name)
}

/** Returns the text of a filter; undefined if it has no condition. */
export function formatFilter(filter: FilterInput | undefined): string | undefined {
  if (filter === undefined || typeof filter === 'string') return filter
  const text = writeObject('filter', filter)
  return text === ALWAYS ? undefined : text
}

function writeObject(name: string, filter: unknown): string {
  if (!isPlainObject(filter)) throw new TypeError(`${name} must be an object`)
  return joinConditions(
    Object.entries(filter).map(([key, value]) => writeEntry(key, value)),
    'and',
    ALWAYS,
  )
}

function writeEntry(key: string, value: unknown): string {
  const group = Object.hasOwn(GROUPS, key) ? GROUPS[key] : undefined
  if (group) return group(value)
  if (!PATH.test(key)) throw new TypeError(`${JSON.stringify(key)} is not a path of fields in a filter`)
  // Fields whose names are words of the language need the prefix.
  const path = key.startsWith('self.') ? key : `self.${key}`
  if (Array.isArray(value)) return writeMembership(path, value, false)
  if (!isPlainObject(value) || Object.hasOwn(value, 'id')) return writeOperator(path, '=', value)
  const terms = Object.entries(value).map(([operator, operand]) => writeOperator(path, operator, operand))
  if (terms.length === 0) throw new TypeError(`The filter has no operator for ${key}`)
  return joinConditions(terms, 'and', ALWAYS)
}

function writeOperator(path: string, operator: string, value: unknown): string {
  const write = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined
  if (!write)
    throw new TypeError(
      `${JSON.stringify(operator)} is not an operator of a filter: use ${Object.keys(OPERATORS).join(', ')}`,
    )
  return write(path, value)
}

function joinConditions(conditions: readonly string[], word: string, empty: string): string {
  if (conditions.length === 0) return empty
  return conditions.length === 1 ? conditions.join('') : `(${conditions.join(` ${word} `)})`
}

function listGroup(name: string, value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw new TypeError(`"${name}" needs a list of filters`)
  return value.map((each) => (typeof each === 'string' ? `(${each})` : writeObject(name, each)))
}

/** A null in the list means records without a value. */
function writeMembership(path: string, value: unknown, isNegated: boolean): string {
  if (!Array.isArray(value)) throw new TypeError(`${path} needs a list of values`)
  const values: readonly unknown[] = value
  const literals = values.filter((each) => each !== null).map((each) => writeValue(path, each))
  const list = `${path} ${isNegated ? 'not ' : ''}in (${literals.join(', ')})`
  if (!values.includes(null)) return list
  return isNegated ? `(${list} and ${path} is not null)` : `(${list} or ${path} is null)`
}

function writeRange(path: string, value: unknown): string {
  if (!Array.isArray(value) || value.length !== 2) throw new TypeError(`${path} needs a list of two values`)
  return value.map((each) => writeValue(path, each)).join(' and ')
}

function readFlag(path: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw new TypeError(`${path}: write true or false after isNull, notNull, isEmpty and notEmpty`)
}

function writeValue(path: string, value: unknown): string {
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (typeof value === 'number' && Number.isFinite(value)) return writeNumber(value)
  if (value instanceof Date) return `'${value.toISOString()}'`
  if (isPlainObject(value) && Object.hasOwn(value, 'id')) return writeValue(path, value['id'])
  const hint = value === null ? ': null works with =, != and in lists' : ''
  // An undefined value often comes from a mistake. Ignoring it would find more records than wanted.
  throw new TypeError(`The filter cannot compare ${path} with ${String(value)}${hint}`)
}

/** The language has no exponents. */
function writeNumber(value: number): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(String(value)) ?? []
  const shift = Number(exponent)
  const digits = whole + fraction
  const point = whole.length + shift
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`
  const padded = digits.padEnd(point, '0')
  return sign + (padded.length > point ? `${padded.slice(0, point)}.${padded.slice(point)}` : padded)
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}
