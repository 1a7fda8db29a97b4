// Which totals the counters keep for each model. See docs/decisions/counters.md.
import type { Field, FieldTypeName } from '../../model/values/field.js'
import { isReference, isReadByDefault, type Model } from '../../model/definition/model.js'
import { SYSTEM_MODELS } from '../../model/catalog/system-models.js'
import type { Value } from '../../model/values/value.js'
import { encodeValue } from '../sql/column.js'
import type { Dialect } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'

/** The table with the number of visible records in each block of ids and in total. */
export const COUNT_TABLE = 'verso_count'
/** The table with the number of visible records for each value of a counted field. */
export const VALUE_COUNT_TABLE = 'verso_value_count'

/** The smallest blocks have 2^8 ids, and a block of each next level consists of 16 smaller ones. TOTAL_LEVEL is one block for all ids. */
export const BLOCK_LEVELS = [8, 12, 16, 20, 24] as const
export const [SMALLEST_LEVEL] = BLOCK_LEVELS
export const TOTAL_LEVEL = 53
export const COUNTER_LEVELS = [...BLOCK_LEVELS, TOTAL_LEVEL] as const

/** Bit operators do not work here: they have 32 bits, and ids have 53. */
export function toBlock(id: number, level: number): number {
  return Math.floor(id / 2 ** level)
}

/** The types whose values have the same text in a Change and in a column of either engine. */
const COUNTED_TYPES: ReadonlySet<FieldTypeName> = new Set<FieldTypeName>([
  ...(['string', 'enum', 'integer', 'long', 'boolean', 'date', 'uuid'] as const),
  ...(['many-to-one', 'one-to-one'] as const),
])

const COUNTED_FIELDS = new WeakMap<Model, readonly Field[]>()

/** Lists the fields whose values are counted: those with a single-column index that is not unique. */
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

/** Every Change must contain the values of a counted field. Commands that load no models do not know the fields that models add to users. */
function isCountedField({ name }: Model, field: Field): boolean {
  const own = SYSTEM_MODELS.find((model) => model.name === name)
  const isAlwaysKnown = own === undefined || own.fields.has(field.name)
  return COUNTED_TYPES.has(field.type) && isReadByDefault(field) && !field.kept && isAlwaysKnown
}

/** Lists the non-unique indexes, each as its fields. */
export function listNonUniqueIndexes(model: Model): (readonly string[])[] {
  return [...model.indexes, ...listReferenceIndexes(model)]
}

/** Every reference has an index: list fields, inverse relations and the check before a delete search by reference. */
function listReferenceIndexes(model: Model): string[][] {
  const references = [...model.fields.values()].filter((field) => isReference(field) && !field.kept)
  const first = new Set([...model.unique, ...model.indexes].map((set) => set[0]))
  return references.filter((field) => !first.has(field.name)).map((field) => [field.name])
}

/** Describes the counters of a model for its schema snapshot. If the description changes, all counters of the model are rebuilt. */
export function describeCounters(model: Model): string[] {
  const visible = model.archived ? ['archived'] : []
  return [...visible, ...listCountedFields(model).map(({ name }) => `=${name}`)].sort()
}

/** The counter key of a value. The key of null is the empty text. */
export function toCounterKey(dialect: Dialect, field: Field, value: Value): string {
  return value === null ? '' : `=${String(encodeValue(dialect, field, value))}`
}

/** The counter key of a column, as SQL. */
export function buildCounterKeySql(field: Field): string {
  return `coalesce('=' || cast(t.${quoteIdentifier(field.name)} as text), '')`
}

/** The condition for the records of a table `t` that are counted. */
export function buildNotArchivedSql({ archived }: Model): string {
  return archived ? 't."archived" is not true' : '1 = 1'
}
