// What the counters count of each model. See docs/decisions/counters.md.
import type { Field, FieldTypeName } from '../../model/values/field-types.js'
import { isReference, isReadByDefault, type Model } from '../../model/definition/model.js'
import { SYSTEM_MODELS } from '../../model/catalog/system-models.js'
import type { Value } from '../../model/values/value.js'
import { encodeValue } from '../sql/column.js'
import type { Dialect } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'

/** How many visible records there are in each block of ids, and in all. */
export const COUNT_TABLE = 'verso_count'
/** How many visible records hold each value of a field. */
export const VALUE_COUNT_TABLE = 'verso_value_count'

/** Blocks of 2^8 ids, and 16 of each size in the next one; then one block for all ids that there can be. */
export const BLOCK_LEVELS = [8, 12, 16, 20, 24] as const
export const TOTAL_LEVEL = 53
export const COUNTER_LEVELS = [...BLOCK_LEVELS, TOTAL_LEVEL] as const

/** Not by bit operators: they know 32 bits, and ids have 53. */
export function toBlock(id: number, level: number): number {
  return Math.floor(id / 2 ** level)
}

/** The types whose values have one text, the same in a Change and in a column of either engine. */
const COUNTED_TYPES: ReadonlySet<FieldTypeName> = new Set<FieldTypeName>([
  ...(['string', 'enum', 'integer', 'long', 'boolean', 'date', 'uuid'] as const),
  ...(['many-to-one', 'one-to-one'] as const),
])

const COUNTED_FIELDS = new WeakMap<Model, readonly Field[]>()

/** The fields whose values are counted: those with an index of their own that is not unique. */
export function listCountedFields(model: Model): readonly Field[] {
  const cached = COUNTED_FIELDS.get(model)
  if (cached) return cached
  const names = new Set(listNonUniqueIndexes(model).flatMap((fields) => (fields.length === 1 ? fields : [])))
  const counted = [...model.fields.values()].filter(
    (field) => names.has(field.name) && isCountedField(model, field),
  )
  COUNTED_FIELDS.set(model, counted)
  return counted
}

/** Changes must tell every value of it, whoever makes them: a command that needs no models knows nothing of what they add to the users. */
function isCountedField({ name }: Model, field: Field): boolean {
  const own = SYSTEM_MODELS.find((model) => model.name === name)
  const isAlwaysKnown = own === undefined || own.fields.has(field.name)
  return COUNTED_TYPES.has(field.type) && isReadByDefault(field) && !field.kept && isAlwaysKnown
}

/** The sets of fields that have an index which is not unique. */
export function listNonUniqueIndexes(model: Model): (readonly string[])[] {
  return [...model.indexes, ...listReferenceIndexes(model)]
}

/** Lists, views and the question who still refers to a record: all look for a reference. */
function listReferenceIndexes(model: Model): string[][] {
  const references = [...model.fields.values()].filter((field) => isReference(field) && !field.kept)
  const first = new Set([...model.unique, ...model.indexes].map((set) => set[0]))
  return references.filter((field) => !first.has(field.name)).map((field) => [field.name])
}

/** As it stands in the shape: where it differs from what was counted, all is counted anew. */
export function describeCounters(model: Model): string[] {
  const visible = model.archived ? ['archived'] : []
  return [...visible, ...listCountedFields(model).map(({ name }) => `=${name}`)].sort()
}

/** A value as a counter knows it. No text is the one of null. */
export function toCounterKey(dialect: Dialect, field: Field, value: Value): string {
  return value === null ? '' : `=${String(encodeValue(dialect, field, value))}`
}

/** The same for a column. */
export function buildCounterKeySql(field: Field): string {
  return `coalesce('=' || cast(t.${quoteIdentifier(field.name)} as text), '')`
}

/** Behind `where`: the records that are counted, of a table `t`. */
export function buildNotArchivedSql({ archived }: Model): string {
  return archived ? 't."archived" is not true' : '1 = 1'
}
