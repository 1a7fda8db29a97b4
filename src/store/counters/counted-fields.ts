// Which totals the counters keep for each model. See docs/decisions/counters.md.
import type { Field } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import type { Value } from '../../model/values/value.js'
import { encodeValue } from '../sql/column.js'
import type { Dialect } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'

/** The table with the number of unarchived records in each block of ids and in total. */
export const COUNT_TABLE = 'verso_count'
/** The table with the number of unarchived records for each value of a counted field. */
export const VALUE_COUNT_TABLE = 'verso_value_count'

/** The smallest blocks have 2^8 ids, and a block of each next level consists of 16 smaller ones. TOTAL_LEVEL is one block for all ids. */
export const BLOCK_LEVELS = [8, 12, 16, 20, 24] as const
export const [SMALLEST_LEVEL] = BLOCK_LEVELS
export const TOTAL_LEVEL = 53
const ARCHIVED_COUNTER = 'archived'
export const COUNTER_LEVELS = [...BLOCK_LEVELS, TOTAL_LEVEL] as const

/** Bit operators do not work here: they have 32 bits, and ids have 53. */
export function toBlock(id: number, level: number): number {
  return Math.floor(id / 2 ** level)
}

/** The facts about a model that its counters depend on. */
export interface CountedModel {
  readonly name: string
  readonly archived: boolean
  readonly countedFields: readonly { readonly name: string }[]
}

/** Reads the description of the counters in a schema snapshot. */
export function parseCounters(name: string, description: readonly string[]): CountedModel {
  return {
    name,
    archived: description.includes(ARCHIVED_COUNTER),
    countedFields: description
      .filter((each) => each !== ARCHIVED_COUNTER)
      .map((each) => ({ name: each.slice(1) })),
  }
}

/** Describes the counters of a model for its schema snapshot. If the description changes, all counters of the model are rebuilt. */
export function describeCounters(model: Model): string[] {
  const archived = model.archived ? [ARCHIVED_COUNTER] : []
  return [...archived, ...model.countedFields.map(({ name }) => `=${name}`)].sort()
}

/** The counter key of a value. The key of null is the empty text. */
export function toCounterKey(dialect: Dialect, field: Field, value: Value): string {
  return value === null ? '' : `=${String(encodeValue(dialect, field, value))}`
}

/** The counter key of a column, as SQL. */
export function buildCounterKeySql(field: Pick<Field, 'name'>): string {
  return `coalesce('=' || cast(t.${quoteIdentifier(field.name)} as text), '')`
}

/** The condition for the records of a table `t` that are counted. */
export function buildNotArchivedSql({ archived }: Pick<Model, 'archived'>): string {
  return archived ? 't."archived" is not true' : '1 = 1'
}
