// Conditions of a list: as people choose them, and as filter objects of the data provider, which are part of the address.
import type { FieldInfo, FieldKind } from '../service/model-info.js'
import type { Texts } from '../texts/english.js'

export type OperatorName = keyof Texts['list']['operators']

/** `{ lastName: { like: 'a%' } }`. */
export type FilterObject = Readonly<Record<string, unknown>>

export interface Condition {
  readonly field: FieldInfo
  readonly operator: OperatorName
  /**
   * One value of the field, two of them for `between`, several for `oneOf`, a related record for a relation. Numbers, dates and times
   * are texts, so that no digit changes; a datetime is UTC.
   */
  readonly value: unknown
}

interface Operator {
  readonly write: (value: unknown, field: FieldInfo) => FilterObject
  /** Returns the value; undefined if the comparison is that of another operator. */
  readonly read: (comparison: FilterObject, field: FieldInfo) => unknown
}

const EMPTY: readonly OperatorName[] = ['empty', 'notEmpty']
const TEXT: readonly OperatorName[] = ['contains', 'is', 'begins', ...EMPTY]
const ORDER: readonly OperatorName[] = [
  'less',
  'lessOrEqual',
  'greater',
  'greaterOrEqual',
  'between',
  ...EMPTY,
]
const QUANTITY: readonly OperatorName[] = ['is', 'isNot', ...ORDER]
const OPERATORS_BY_KIND: Readonly<Record<FieldKind, readonly OperatorName[]>> = {
  string: TEXT,
  text: TEXT,
  enum: TEXT,
  integer: QUANTITY,
  long: QUANTITY,
  decimal: QUANTITY,
  date: QUANTITY,
  time: QUANTITY,
  datetime: ['is', ...ORDER],
  boolean: ['yes', 'no', ...EMPTY],
  uuid: ['is', ...EMPTY],
  json: EMPTY,
  file: [],
  reference: ['is', 'isNot', ...EMPTY],
  links: ['includes', ...EMPTY],
  'owned-list': EMPTY,
  inverse: EMPTY,
}
const CHOICES: readonly OperatorName[] = ['oneOf', ...EMPTY]
const WITHOUT_VALUE: readonly OperatorName[] = ['yes', 'no', ...EMPTY]
/** Inputs have minutes, and records have milliseconds. So a moment is the minute that begins with it. */
const MOMENT_MS = 60_000

export function listOperators({ kind, choices, isSecret, isWriteOnly }: FieldInfo): readonly OperatorName[] {
  if (isSecret || isWriteOnly) return []
  return choices ? CHOICES : OPERATORS_BY_KIND[kind]
}

export function hasValue(operator: OperatorName): boolean {
  return !WITHOUT_VALUE.includes(operator)
}

const OPERATORS: Readonly<Record<OperatorName, Operator>> = {
  contains: matchText((text) => `%${text}%`, /^%(.*)%$|^([^%].*[^%]|[^%])$/s),
  begins: matchText((text) => `${text}%`, /^([^%].*)%$/s),
  is: {
    write: (value, { kind }) => (kind === 'datetime' ? writeMoment(String(value)) : { '=': value }),
    read: (comparison, { kind }) =>
      kind === 'datetime' ? readMoment(comparison) : readOnly(comparison, '='),
  },
  isNot: compareBy('!='),
  less: compareBy('<'),
  lessOrEqual: compareBy('<='),
  greater: compareBy('>'),
  greaterOrEqual: compareBy('>='),
  between: compareBy('between'),
  oneOf: compareBy('in'),
  includes: compareBy('='),
  yes: equalTo(() => ({ '=': true })),
  no: equalTo(() => ({ '=': false })),
  empty: equalTo((field) => writeEmpty(field, true)),
  notEmpty: equalTo((field) => writeEmpty(field, false)),
}

function compareBy(sign: string): Operator {
  return { write: (value) => ({ [sign]: value }), read: (comparison) => readOnly(comparison, sign) }
}

function equalTo(write: (field: FieldInfo) => FilterObject): Operator {
  return {
    write: (_, field) => write(field),
    read: (comparison, field) => (isSameJson(comparison, write(field)) ? null : undefined),
  }
}

/** `%` and `_` are wildcards of the service. */
function matchText(toPattern: (text: string) => string, pattern: RegExp): Operator {
  return {
    write: (value) => ({ like: toPattern(String(value).replaceAll(/[\\%_]/g, String.raw`\$&`)) }),
    read: (comparison) => {
      const like = readOnly(comparison, 'like')
      const match = typeof like === 'string' ? pattern.exec(like) : null
      const text = match?.[1] ?? match?.[2]
      const isPlain = text !== undefined && !/(?<!\\)(?:\\\\)*[%_]/.test(text)
      return isPlain ? text.replaceAll(/\\([\\%_])/g, '$1') : undefined
    },
  }
}

/** Both sides were written by this file, so their keys have the same order. */
function isSameJson(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right)
}

function readOnly(comparison: FilterObject, sign: string): unknown {
  return Object.keys(comparison).length === 1 ? comparison[sign] : undefined
}

function writeMoment(begin: string): FilterObject {
  return { '>=': begin, '<': new Date(new Date(begin).getTime() + MOMENT_MS).toISOString() }
}

function readMoment(comparison: FilterObject): unknown {
  const begin = comparison['>=']
  if (typeof begin !== 'string' || Number.isNaN(new Date(begin).getTime())) return undefined
  return isSameJson(comparison, writeMoment(begin)) ? begin : undefined
}

/** A text may be null, or have no characters. */
function writeEmpty({ kind, choices }: FieldInfo, isEmpty: boolean): FilterObject {
  if ((kind === 'string' || kind === 'text') && !choices) return { [isEmpty ? 'in' : 'notIn']: ['', null] }
  if (kind === 'links' || kind === 'owned-list' || kind === 'inverse') return { isEmpty }
  return { isNull: isEmpty }
}

export function writeCondition({ field, operator, value }: Condition): FilterObject {
  return { [field.name]: OPERATORS[operator].write(value, field) }
}

/** Returns undefined for a condition that the dialog cannot edit, such as one from an address that somebody has written. */
export function readCondition(filter: FilterObject, fields: readonly FieldInfo[]): Condition | undefined {
  const [entry, ...rest] = Object.entries(filter)
  if (!entry || rest.length > 0) return undefined
  const [path, comparison] = entry
  const name = path.replace(/\.id$/, '')
  const field = fields.find((each) => each.name === path || (each.name === name && each.kind === 'reference'))
  if (!field) return undefined
  const normal = normalize(comparison, field)
  for (const operator of listOperators(field)) {
    const value = OPERATORS[operator].read(normal, field)
    if (value !== undefined) return { field, operator, value }
  }
  return undefined
}

/** Writes the short forms of an address in full: `{ state: 'open' }`, `{ company: 5 }`, `{ state: ['open', 'new'] }`. */
function normalize(comparison: unknown, { kind, choices }: FieldInfo): FilterObject {
  const isRelation = kind === 'reference' || kind === 'links'
  if (comparison === null) return { isNull: true }
  if (Array.isArray(comparison)) return { in: comparison }
  if (typeof comparison !== 'object') {
    if (choices) return { in: [comparison] }
    return { '=': isRelation ? { id: comparison } : comparison }
  }
  const object = comparison as FilterObject
  return 'id' in object ? { '=': object } : object
}

function isFilterObject(value: unknown): value is FilterObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Lists the conditions of the filter of a list, without its search words. */
export function listFilters(filter: FilterObject): readonly FilterObject[] {
  const { and } = filter
  // Somebody may have written the address.
  const group = Array.isArray(and) ? and.filter(isFilterObject) : []
  const others = Object.entries(filter).filter(([key]) => key !== 'q' && key !== 'and')
  return [...group, ...others.map(([key, value]) => ({ [key]: value }))]
}

/** A field may occur in several conditions, so they are members of a group. */
export function joinFilters(words: unknown, filters: readonly FilterObject[]): FilterObject {
  const search = typeof words === 'string' && words !== '' ? { q: words } : {}
  return filters.length === 0 ? search : { ...search, and: filters }
}
