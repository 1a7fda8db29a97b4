// How many bytes a record takes in an answer: at most, by its model, and as it is, found out by the database without reading its texts.
import type { Step } from '../../model/query/criteria.js'
import { MAX_TEXT_BYTES, storageOf, type Field } from '../../model/values/field-types.js'
import type { Entry, Selection } from '../../model/query/selection.js'
import { Scope } from './criteria.js'
import type { Dialect } from '../engine/database.js'
import { quote } from '../engine/names.js'
import type { Rendered } from './parameters.js'
import { mostShown } from './relation.js'

/** Of a code point in UTF-8. */
const MOST_BYTES = 4
/** Numbers, dates, uuids, `true` and `null`. A decimal has at most 38 digits. */
const SHORT_BYTES = 44
/** The id and the version of a record, with their names. */
const OWN_BYTES = 56
const ENUM_LENGTH = 255
/**
 * An estimate: computed text without a declared length is a name or a label of a few short fields. A function does not tell what it is made of,
 * and the text may have up to 1 MiB. A page of computed text that turns out larger is read whole once before it is staged or refused.
 */
const COMPUTED_LENGTH = 1_020
/** A rough weight measures no value that can take no more than this. */
const LIMITED_BYTES = 4_096

export interface Weight {
  /** By the lengths of stored values: quick, because no engine reads a long text for its length. Escapes in JSON are not counted. */
  readonly stored: Rendered
  /** By the lengths of values as JSON, never less than what a record takes. */
  readonly printed: Rendered
  /** Measures long values as `stored` does. Counts a limited value as the most bytes that the model allows. */
  readonly rough: Rendered
  /** The part of `rough` that is the same for every record. */
  readonly limitedBytes: number
}

/** The most that the values of a record can take; Infinity where it shows a list. Escapes in JSON are not counted. */
export function mostBytes(selection: Selection): number {
  return selection.entries.reduce((sum, entry) => sum + mostBytesAt(entry), fixedBytes(selection))
}

function mostBytesAt({ field, neighbour }: Entry): number {
  if (!neighbour) return mostBytesOf(field)
  return field.relation?.isList ? Infinity : mostBytes(neighbour.shown)
}

export function weighSelection(dialect: Dialect, selection: Selection): Weight {
  const weigh = (measure: Measure, measured: Selection) => {
    const scope = new Scope(dialect)
    return scope.render(recordWeight({ scope, depth: 1, lists: 0, measure }, measured))
  }
  const stored: Measure = (column) => `octet_length(${column})`
  const isLimited = (entry: Entry) => !holdsEstimate(entry) && mostBytesAt(entry) <= LIMITED_BYTES
  const limited = { ...selection, entries: selection.entries.filter(isLimited) }
  const long = { ...selection, entries: selection.entries.filter((entry) => !isLimited(entry)) }
  const limitedBytes = mostBytes(limited)
  const { sql, params } = weigh(stored, long)
  return {
    stored: weigh(stored, selection),
    printed: weigh((column, field) => {
      const print = dialect.print[storageOf(field)]
      return `octet_length(${print ? print(column) : column})`
    }, selection),
    rough: { sql: `${limitedBytes} + ${sql}`, params },
    limitedBytes,
  }
}

type Measure = (column: string, field: Field) => string

interface Place {
  readonly scope: Scope
  readonly depth: number
  /** In how many lists. */
  readonly lists: number
  readonly measure: Measure
}

function recordWeight(place: Place, selection: Selection): string {
  const values = selection.entries.map((entry) => entryWeight(place, entry))
  return [String(fixedBytes(selection)), ...values].join(' + ')
}

function entryWeight(place: Place, { steps, neighbour, ...entry }: Entry): string {
  const { scope, measure } = place
  const [step, ...rest] = steps
  if (step) {
    const shorter = { ...entry, steps: rest, ...(neighbour ? { neighbour } : {}) }
    return weightOver(step, place, (inner) => entryWeight(inner, shorter))
  }
  if (neighbour) return weightOver(neighbour.step, place, (inner) => recordWeight(inner, neighbour.shown))
  const { field, mask } = entry
  if (!isLong(field)) return String(SHORT_BYTES)
  const bytes = measure(asText(scope, `${scope.alias}.${quote(field.name)}`, field), field)
  // A value that is hidden takes nothing, so that its length is not told.
  return mask ? `coalesce(case when ${scope.holds(mask)} then ${bytes} end, 4)` : `coalesce(${bytes}, 4)`
}

function weightOver(step: Step, place: Place, weigh: (inner: Place) => string): string {
  const { scope, depth, lists } = place
  const isList = step.field.relation?.isList === true
  const inner = {
    ...place,
    scope: scope.under(`r${depth}`),
    depth: depth + 1,
    lists: lists + (isList ? 1 : 0),
  }
  const { from, where } = scope.neighbours(step, inner.scope.alias)
  const bytes = weigh(inner)
  const most = isList ? mostShown(step.field, lists) : Infinity
  if (most === Infinity) return `coalesce((select sum(${bytes}) from ${from} where ${where}), 4)`
  // A list with more members is refused when it is read: no more of them are weighed.
  const members = `select ${bytes} as "bytes" from ${from} where ${where} limit ${most + 1}`
  return `coalesce((select sum("bytes") from (${members}) as w${depth}), 4)`
}

/** What JSON is kept as differs. */
function asText({ dialect }: Scope, column: string, field: Field): string {
  return storageOf(field) === 'json' ? dialect.json.value(column, 'json') : column
}

function isLong(field: Field): boolean {
  const storage = storageOf(field)
  return storage === 'text' || storage === 'json'
}

function mostBytesOf(field: Field): number {
  if (!isLong(field)) return SHORT_BYTES
  if (storageOf(field) === 'json') return MAX_TEXT_BYTES
  if (isEstimated(field)) return MOST_BYTES * COMPUTED_LENGTH
  return Math.min(MAX_TEXT_BYTES, MOST_BYTES * (field.maxLength === 0 ? ENUM_LENGTH : field.maxLength))
}

function isEstimated(field: Field): boolean {
  return field.computed !== undefined && field.maxLength === MAX_TEXT_BYTES
}

function holdsEstimate({ field, neighbour }: Entry): boolean {
  return neighbour ? neighbour.shown.entries.some(holdsEstimate) : isEstimated(field)
}

/** Everything but the values. */
function fixedBytes({ entries }: Selection): number {
  return entries.reduce((sum, { key }) => sum + nameBytes(key), OWN_BYTES)
}

/** The name of a member with its marks, the colon, the comma, and the marks of its value. */
function nameBytes(key: string): number {
  return key.length + 6
}
