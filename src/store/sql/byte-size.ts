// How many bytes a record takes in an answer: at most, by its model, and as it is, found out by the database without reading its texts.
import type { PathStep } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import { MAX_TEXT_BYTES, getStorage } from '../../model/values/field-types.js'
import type { SelectionEntry, Selection } from '../../model/query/selection.js'
import { SqlScope } from './criteria.js'
import type { Dialect } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import type { SqlFragment } from './parameters.js'
import { getMaxMembers } from './relation.js'

/** Of a code point in UTF-8. */
const MAX_CODE_POINT_BYTES = 4
/** Numbers, dates, uuids, `true` and `null`. A decimal has at most 38 digits. */
const SHORT_VALUE_BYTES = 44
/** The id and the version of a record, with their names. */
const ID_AND_VERSION_BYTES = 56
const MAX_ENUM_LENGTH = 255
/**
 * An estimate: computed text without a declared length is a name or a label of a few short fields. A function does not tell what it is made of,
 * and the text may have up to 1 MiB. A page of computed text that turns out larger is read whole once before it is staged or refused.
 */
const ESTIMATED_COMPUTED_LENGTH = 1_020
/** A rough weight measures no value that can take no more than this. */
const MAX_LIMITED_VALUE_BYTES = 4_096

export interface RecordSizeSql {
  /** By the lengths of stored values: quick, because no engine reads a long text for its length. Escapes in JSON are not counted. */
  readonly storedBytes: SqlFragment
  /** By the lengths of values as JSON, never less than what a record takes. */
  readonly jsonBytes: SqlFragment
  /** Measures long values as `stored` does. Counts a limited value as the most bytes that the model allows. */
  readonly estimatedBytes: SqlFragment
  /** The part of `rough` that is the same for every record. */
  readonly limitedBytes: number
}

/** The most that the values of a record can take; Infinity where it shows a list. Escapes in JSON are not counted. */
export function computeMaxBytes(selection: Selection): number {
  return selection.entries.reduce(
    (sum, entry) => sum + computeMaxEntryBytes(entry),
    countFixedBytes(selection),
  )
}

function computeMaxEntryBytes({ field, related }: SelectionEntry): number {
  if (!related) return computeMaxFieldBytes(field)
  return field.relation?.isList ? Infinity : computeMaxBytes(related.selection)
}

export function compileSizeSql(dialect: Dialect, selection: Selection): RecordSizeSql {
  const weigh = (compileLength: CompileByteLength, measured: Selection) => {
    const scope = new SqlScope(dialect)
    return scope.render(compileRecordSize({ scope, depth: 1, listDepth: 0, compileLength }, measured))
  }
  const stored: CompileByteLength = (column) => `octet_length(${column})`
  const isLimited = (entry: SelectionEntry) =>
    !holdsEstimate(entry) && computeMaxEntryBytes(entry) <= MAX_LIMITED_VALUE_BYTES
  const limited = { ...selection, entries: selection.entries.filter(isLimited) }
  const long = { ...selection, entries: selection.entries.filter((entry) => !isLimited(entry)) }
  const limitedBytes = computeMaxBytes(limited)
  const { sql, params } = weigh(stored, long)
  return {
    storedBytes: weigh(stored, selection),
    jsonBytes: weigh((column, field) => {
      const print = dialect.toJson[getStorage(field)]
      return `octet_length(${print ? print(column) : column})`
    }, selection),
    estimatedBytes: { sql: `${limitedBytes} + ${sql}`, params },
    limitedBytes,
  }
}

type CompileByteLength = (column: string, field: Field) => string

interface SizeContext {
  readonly scope: SqlScope
  readonly depth: number
  /** In how many lists. */
  readonly listDepth: number
  readonly compileLength: CompileByteLength
}

function compileRecordSize(context: SizeContext, selection: Selection): string {
  const values = selection.entries.map((entry) => compileEntrySize(context, entry))
  return [String(countFixedBytes(selection)), ...values].join(' + ')
}

function compileEntrySize(context: SizeContext, { steps, related, ...entry }: SelectionEntry): string {
  const { scope, compileLength } = context
  const [step, ...rest] = steps
  if (step) {
    const shorter: SelectionEntry = related ? { ...entry, steps: rest, related } : { ...entry, steps: rest }
    return compileRelatedSize(step, context, (inner) => compileEntrySize(inner, shorter))
  }
  if (related)
    return compileRelatedSize(related.step, context, (inner) => compileRecordSize(inner, related.selection))
  const { field, mask } = entry
  if (!hasVariableLength(field)) return String(SHORT_VALUE_BYTES)
  const bytes = compileLength(
    compileText(scope, `${scope.alias}.${quoteIdentifier(field.name)}`, field),
    field,
  )
  // A value that is hidden takes nothing, so that its length is not told.
  return mask
    ? `coalesce(case when ${scope.compilePermission(mask)} then ${bytes} end, 4)`
    : `coalesce(${bytes}, 4)`
}

function compileRelatedSize(
  step: PathStep,
  context: SizeContext,
  compileInner: (inner: SizeContext) => string,
): string {
  const { scope, depth, listDepth } = context
  const isList = step.field.relation?.isList === true
  const inner = {
    ...context,
    scope: scope.withAlias(`r${depth}`),
    depth: depth + 1,
    listDepth: listDepth + (isList ? 1 : 0),
  }
  const { from, where } = scope.compileRelation(step, inner.scope.alias)
  const bytes = compileInner(inner)
  const most = isList ? getMaxMembers(step.field, listDepth) : Infinity
  if (most === Infinity) return `coalesce((select sum(${bytes}) from ${from} where ${where}), 4)`
  // A list with more members is refused when it is read: no more of them are weighed.
  const members = `select ${bytes} as "bytes" from ${from} where ${where} limit ${most + 1}`
  return `coalesce((select sum("bytes") from (${members}) as w${depth}), 4)`
}

/** What JSON is kept as differs. */
function compileText({ dialect }: SqlScope, column: string, field: Field): string {
  return getStorage(field) === 'json' ? dialect.json.value(column, 'json') : column
}

function hasVariableLength(field: Field): boolean {
  const storage = getStorage(field)
  return storage === 'text' || storage === 'json'
}

function computeMaxFieldBytes(field: Field): number {
  if (!hasVariableLength(field)) return SHORT_VALUE_BYTES
  if (getStorage(field) === 'json') return MAX_TEXT_BYTES
  if (hasEstimatedLength(field)) return MAX_CODE_POINT_BYTES * ESTIMATED_COMPUTED_LENGTH
  return Math.min(
    MAX_TEXT_BYTES,
    MAX_CODE_POINT_BYTES * (field.maxLength === 0 ? MAX_ENUM_LENGTH : field.maxLength),
  )
}

function hasEstimatedLength(field: Field): boolean {
  return field.computed !== undefined && field.maxLength === MAX_TEXT_BYTES
}

function holdsEstimate({ field, related }: SelectionEntry): boolean {
  return related ? related.selection.entries.some(holdsEstimate) : hasEstimatedLength(field)
}

/** Everything but the values. */
function countFixedBytes({ entries }: Selection): number {
  return entries.reduce((sum, { key }) => sum + countNameBytes(key), ID_AND_VERSION_BYTES)
}

/** The name of a member with its marks, the colon, the comma, and the marks of its value. */
function countNameBytes(key: string): number {
  return key.length + 6
}
