// A place in a sorted list: behind one record, known by what it was sorted by and its id, whatever becomes of it. As text it is the
// `after` of a link.
import { storageOf, type Storage } from '../values/field-types.js'
import { parseDate, parseDatetime, parseTime } from '../values/date-time.js'
import type { SortKey } from './sort-key.js'
import { textFault, type Value } from '../values/value.js'

export interface Position {
  /** One for each key of the order; null where the record has none, or none that may be read. */
  readonly values: readonly Value[]
  readonly id: number
}

/** A link must fit into a request line. */
export const MAX_POSITION_LENGTH = 4_096

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const DECIMAL = /^-?[0-9]{1,38}(?:\.[0-9]{1,38})?$/

/** What a column of each kind can hold, of those that have an order. */
const HOLDS: Readonly<Partial<Record<Storage, (value: unknown) => boolean>>> = {
  text: ifText((text) => textFault(text) === undefined),
  integer: (value) => Number.isSafeInteger(value) && !Object.is(value, -0),
  boolean: (value) => typeof value === 'boolean',
  decimal: ifText((text) => DECIMAL.test(text)),
  date: ifText((text) => parseDate(text) === text),
  time: ifText((text) => parseTime(text) === text),
  datetime: ifText((text) => parseDatetime(text) === text),
  uuid: ifText((text) => UUID.test(text)),
}

function ifText(holds: (text: string) => boolean): (value: unknown) => boolean {
  return (value) => typeof value === 'string' && holds(value)
}

/** Undefined where it cannot be told, or would be too long: then only the offset says where a page begins. */
export function printPosition(sort: readonly SortKey[], { values, id }: Position): string | undefined {
  const isTold = sort.every((key, index) => holds(key, values[index] ?? null))
  if (!isTold) return undefined
  const parts = [...sort.map((key, index) => [nameOf(key), values[index] ?? null]), id]
  const text = Buffer.from(JSON.stringify(parts)).toString('base64url')
  return text.length > MAX_POSITION_LENGTH ? undefined : text
}

/** The position that was printed for the same order, in exactly these letters. */
export function positionFrom(
  sort: readonly SortKey[],
  input: unknown,
  faults: string[],
): Position | undefined {
  if (input === undefined) return undefined
  const position = readPosition(sort, input)
  if (typeof position !== 'string') return position
  faults.push(`after ${position}: take it from the "next" of a Link, as it is`)
  return undefined
}

/** Or what is wrong with it. */
function readPosition(sort: readonly SortKey[], input: unknown): Position | string {
  const parts = typeof input === 'string' ? partsOf(input) : undefined
  if (!parts) return 'is no position'
  const [pairs, id] = [parts.slice(0, -1), parts.at(-1)]
  const isOfOrder =
    pairs.length === sort.length && sort.every((key, index) => nameIn(pairs[index]) === nameOf(key))
  if (!isOfOrder) return 'is a position in another sortBy'
  if (typeof id !== 'number' || !Number.isSafeInteger(id) || id < 0) return 'is no position of this model'
  const position = { values: pairs.map((pair) => (pair as readonly unknown[])[1] as Value), id }
  return printPosition(sort, position) === input ? position : 'is no position of this model'
}

function nameIn(pair: unknown): unknown {
  return Array.isArray(pair) ? (pair[0] as unknown) : undefined
}

function partsOf(text: string): readonly unknown[] | undefined {
  if (text.length > MAX_POSITION_LENGTH) return undefined
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(parts) && parts.length > 0 ? parts : undefined
  } catch {
    return undefined
  }
}

function holds({ field }: SortKey, value: unknown): boolean {
  const check = HOLDS[storageOf(field)]
  return check !== undefined && (value === null || check(value))
}

function nameOf({ steps, field, descending }: SortKey): string {
  return `${descending ? '-' : ''}${[...steps.map((step) => step.field.name), field.name].join('.')}`
}
