// Cursors for keyset pagination. A cursor holds the sort values and the id of a record, so it stays valid if that record changes or
// disappears. Encoded as text, it is the `after` parameter of a link.
import type { Storage } from '../values/field.js'
import { getStorage } from '../values/field-types.js'
import { parseDate, parseDatetime, parseTime } from '../values/date-time.js'
import type { SortKey } from './sort.js'
import { validateText, type Value } from '../values/value.js'

export interface PageCursor {
  /** One value for each sort key; null if the record has none or the user may not read it. */
  readonly values: readonly Value[]
  readonly id: number
}

/** A link with a cursor must fit into a request line. */
const MAX_CURSOR_CHARACTERS = 4_096

const UUID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const DECIMAL_PATTERN = /^-?[0-9]{1,38}(?:\.[0-9]{1,38})?$/

/** Checks the canonical spelling of a value, for each storage that can be sorted. */
const CURSOR_VALUE_CHECKS: Readonly<Partial<Record<Storage, (value: unknown) => boolean>>> = {
  text: whenText((text) => validateText(text) === undefined),
  integer: (value) => Number.isSafeInteger(value) && !Object.is(value, -0),
  boolean: (value) => typeof value === 'boolean',
  decimal: whenText((text) => DECIMAL_PATTERN.test(text)),
  date: whenText((text) => parseDate(text) === text),
  time: whenText((text) => parseTime(text) === text),
  datetime: whenText((text) => parseDatetime(text) === text),
  uuid: whenText((text) => UUID_PATTERN.test(text)),
}

function whenText(holds: (text: string) => boolean): (value: unknown) => boolean {
  return (value) => typeof value === 'string' && holds(value)
}

/** Returns undefined if a value cannot be encoded or the text would be too long. Pages then use only the offset. */
export function encodeCursor(sort: readonly SortKey[], { values, id }: PageCursor): string | undefined {
  const isEncodable = sort.every((key, index) => isCursorValue(key, values[index] ?? null))
  if (!isEncodable) return undefined
  const parts = [...sort.map((key, index) => [formatSortKey(key), values[index] ?? null]), id]
  const text = Buffer.from(JSON.stringify(parts)).toString('base64url')
  return text.length > MAX_CURSOR_CHARACTERS ? undefined : text
}

/** Accepts only a text that `encodeCursor` returned for the same order. */
export function parseCursor(
  sort: readonly SortKey[],
  input: unknown,
  errors: string[],
): PageCursor | undefined {
  const cursor = decodeCursor(sort, input)
  if (typeof cursor !== 'string') return cursor
  errors.push(`after ${cursor}: copy it unchanged from the rel="next" link of a page`)
  return undefined
}

/** Returns an error message if the cursor is invalid. */
function decodeCursor(sort: readonly SortKey[], input: unknown): PageCursor | string {
  const parts = typeof input === 'string' ? decodeCursorParts(input) : undefined
  if (!parts) return 'is not a cursor'
  const [pairs, id] = [parts.slice(0, -1), parts.at(-1)]
  const isOfOrder =
    pairs.length === sort.length &&
    sort.every((key, index) => getPairName(pairs[index]) === formatSortKey(key))
  if (!isOfOrder) return 'is a cursor of a search with another sortBy'
  if (typeof id !== 'number' || !Number.isSafeInteger(id) || id < 0) return 'is not a cursor of this model'
  const cursor = { values: pairs.map((pair) => (pair as readonly unknown[])[1] as Value), id }
  return encodeCursor(sort, cursor) === input ? cursor : 'is not a cursor of this model'
}

function getPairName(pair: unknown): unknown {
  return Array.isArray(pair) ? (pair[0] as unknown) : undefined
}

function decodeCursorParts(text: string): readonly unknown[] | undefined {
  if (text.length > MAX_CURSOR_CHARACTERS) return undefined
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(parts) && parts.length > 0 ? parts : undefined
  } catch {
    return undefined
  }
}

function isCursorValue({ field }: SortKey, value: unknown): boolean {
  const check = CURSOR_VALUE_CHECKS[getStorage(field)]
  return check !== undefined && (value === null || check(value))
}

function formatSortKey({ steps, field, descending }: SortKey): string {
  return `${descending ? '-' : ''}${[...steps.map((step) => step.field.name), field.name].join('.')}`
}
