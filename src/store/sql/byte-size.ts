// The size of a record in a response: the maximum by its model, and the actual size measured by the database without reading long texts.
import type { PathStep } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import { MAX_TEXT_BYTES, getStorage } from '../../model/values/field-types.js'
import type { SelectionEntry, Selection } from '../../model/query/selection.js'
import { SqlScope } from './criteria.js'
import type { Dialect } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import type { SqlFragment } from './parameters.js'
import { getMaxMembers } from './relation.js'

/** Bytes of a code point in UTF-8. */
const MAX_CODE_POINT_BYTES = 4
/** For numbers, dates, uuids, `true` and `null`. A decimal has at most 38 digits. */
const SHORT_VALUE_BYTES = 44
/** The id and the version of a record with their keys. */
const ID_AND_VERSION_BYTES = 56
const MAX_ENUM_LENGTH = 255
/**
 * An estimate: computed text without a declared length is usually a name or a label, but can have up to 1 MiB. A page with longer computed
 * text is read whole once before it is staged or rejected.
 */
const ESTIMATED_COMPUTED_LENGTH = 1_020
/** `estimatedBytes` does not measure values that can never be larger than this. */
const MAX_LIMITED_VALUE_BYTES = 4_096

export interface RecordSizeSql {
  /** The lengths of stored values without JSON escapes. Fast, because both engines know the length of a long text without reading it. */
  readonly storedBytes: SqlFragment
  /** The lengths of values as JSON; never less than the actual size. */
  readonly jsonBytes: SqlFragment
  /** Measures long values like `storedBytes`, and counts a limited value with its maximum. */
  readonly estimatedBytes: SqlFragment
  /** The part of `estimatedBytes` that is the same for every record. */
  readonly limitedBytes: number
}

/** The maximum size of a record without JSON escapes; Infinity if the selection contains a list. */
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
  const compileSize = (compileLength: CompileByteLength, measured: Selection) => {
    const scope = new SqlScope(dialect)
    return scope.render(compileRecordSize({ scope, depth: 1, listDepth: 0, compileLength }, measured))
  }
  const stored: CompileByteLength = (column) => `octet_length(${column})`
  const isLimited = (entry: SelectionEntry) =>
    !holdsEstimate(entry) && computeMaxEntryBytes(entry) <= MAX_LIMITED_VALUE_BYTES
  const limited = { ...selection, entries: selection.entries.filter(isLimited) }
  const long = { ...selection, entries: selection.entries.filter((entry) => !isLimited(entry)) }
  const limitedBytes = computeMaxBytes(limited)
  const { sql, params } = compileSize(stored, long)
  return {
    storedBytes: compileSize(stored, selection),
    jsonBytes: compileSize((column, field) => {
      const toJson = dialect.toJson[getStorage(field)]
      return `octet_length(${toJson ? toJson(column) : column})`
    }, selection),
    estimatedBytes: { sql: `${limitedBytes} + ${sql}`, params },
    limitedBytes,
  }
}

type CompileByteLength = (column: string, field: Field) => string

interface SizeContext {
  readonly scope: SqlScope
  readonly depth: number
  /** The number of lists around the record. */
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
  // A hidden value has no size, so that its length is not disclosed.
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
  const maxMembers = isList ? getMaxMembers(step.field, listDepth) : Infinity
  if (maxMembers === Infinity) return `coalesce((select sum(${bytes}) from ${from} where ${where}), 4)`
  // A read of a longer list is rejected, so further members need not be measured.
  const members = `select ${bytes} as "bytes" from ${from} where ${where} limit ${maxMembers + 1}`
  return `coalesce((select sum("bytes") from (${members}) as w${depth}), 4)`
}

/** The column as text: the engines store JSON in different types. */
function compileText({ dialect }: SqlScope, column: string, field: Field): string {
  return getStorage(field) === 'json' ? dialect.json.value(column, 'json') : column
}

export function hasVariableLength(field: Field): boolean {
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

/** The maximum size of a row, also if it contains computed text without a declared length. */
export function computeMaxRowBytes(fields: readonly Field[]): number {
  return fields.reduce(
    (sum, field) => sum + (hasEstimatedLength(field) ? MAX_TEXT_BYTES : computeMaxFieldBytes(field)),
    ID_AND_VERSION_BYTES,
  )
}

function hasEstimatedLength(field: Field): boolean {
  return field.computed !== undefined && field.maxLength === MAX_TEXT_BYTES
}

function holdsEstimate({ field, related }: SelectionEntry): boolean {
  return related ? related.selection.entries.some(holdsEstimate) : hasEstimatedLength(field)
}

/** The bytes of a record besides its values. */
function countFixedBytes({ entries }: Selection): number {
  return entries.reduce((sum, { key }) => sum + countNameBytes(key), ID_AND_VERSION_BYTES)
}

/** A key with its quotes, colon and comma, and the quotes of its value. */
function countNameBytes(key: string): number {
  return key.length + 6
}
