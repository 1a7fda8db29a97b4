// Rebuilds counters in batches while other transactions write. Each function is the body of a short transaction, and its result stays correct.
import type { Field } from '../../model/values/field.js'
import type { ModelField } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import { BATCH_LEVEL } from './check.js'
import {
  BLOCK_LEVELS,
  COUNT_TABLE,
  VALUE_COUNT_TABLE,
  SMALLEST_LEVEL,
  TOTAL_LEVEL,
} from './counted-fields.js'
import { getColumn } from '../sql/column.js'
import type { SqlFragment } from '../sql/parameters.js'
import type { Dialect, Queryable, SqlValue, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { buildBlockCountSql, buildValueCountSql, insertLevelSums } from './rebuild.js'

/** The rows that one transaction counts by their values, unless a single value has more rows. */
const REBUILD_BATCH_ROWS = 100_000

const BATCHED_LEVELS = BLOCK_LEVELS.filter((level) => level <= BATCH_LEVEL)
const SUMMED_LEVELS = [...BLOCK_LEVELS.filter((level) => level > BATCH_LEVEL), TOTAL_LEVEL]

/** Takes the lock of the Log. Every other writer has updated the counters already, or waits with that until this transaction ends. */
async function lockCounters(tx: Transaction, { lockLog }: Dialect): Promise<void> {
  await tx.all(`${lockLog.with}select 1 as "one"${lockLog.from}`)
}

/** Rebuilds the blocks of a batch of ids, up to the size of the batch. */
export async function rebuildIdBatch(
  tx: Transaction,
  dialect: Dialect,
  model: Model,
  batch: number,
): Promise<void> {
  await lockCounters(tx, dialect)
  const toBlockRange = (level: number) => {
    const blocksPerBatch = 2 ** (BATCH_LEVEL - level)
    return [batch * blocksPerBatch, (batch + 1) * blocksPerBatch] as const
  }
  for (const level of BATCHED_LEVELS) {
    await tx.run(
      `delete from ${COUNT_TABLE} where model = ? and level = ${level} and block >= ? and block < ?`,
      [model.name, ...toBlockRange(level)],
    )
  }
  await tx.run(
    `insert into ${COUNT_TABLE} (model, level, block, n) ${buildBlockCountSql(model, ' and t."id" >= ? and t."id" < ?')}`,
    [model.name, batch * 2 ** BATCH_LEVEL, (batch + 1) * 2 ** BATCH_LEVEL],
  )
  let below: number = SMALLEST_LEVEL
  for (const level of BATCHED_LEVELS.slice(1)) {
    await insertLevelSums(tx, model, { level, below, blockRange: toBlockRange(below) })
    below = level
  }
}

/** Rebuilds the blocks that are larger than a batch, after all batches. */
export async function rebuildLargeBlocks(tx: Transaction, dialect: Dialect, model: Model): Promise<void> {
  await lockCounters(tx, dialect)
  await tx.run(`delete from ${COUNT_TABLE} where model = ? and level in (${SUMMED_LEVELS.join(', ')})`, [
    model.name,
  ])
  let below: number = BATCHED_LEVELS.at(-1) ?? SMALLEST_LEVEL
  for (const level of SUMMED_LEVELS) {
    await insertLevelSums(tx, model, { level, below })
    below = level
  }
}

/** Finds the last value of the batch of values after `after`, in the order of the field's index; undefined for the last batch. */
export async function findValueBatchEnd(
  db: Queryable,
  { model, field }: ModelField,
  after: SqlValue,
): Promise<SqlValue | undefined> {
  const column = `t.${quoteIdentifier(field.name)}`
  const [row] = await db.all(
    `select ${column} as "end" from ${quoteIdentifier(toTableName(model.name))} as t where ${column} is not null` +
      `${after === null ? '' : ` and ${column} > ?`} order by ${column} limit 1 offset ${REBUILD_BATCH_ROWS}`,
    after === null ? [] : [after],
  )
  return row?.['end']
}

export interface ValueRange {
  /** The last value before the range; null if the range starts with the first value. */
  readonly after: SqlValue
  /** The last value of the range; undefined if the range has no end. */
  readonly end: SqlValue | undefined
}

/** Rebuilds the counters of a range of values. */
export async function rebuildValueRange(
  tx: Transaction,
  dialect: Dialect,
  counted: ModelField,
  { after, end }: ValueRange,
): Promise<void> {
  await lockCounters(tx, dialect)
  const { model, field } = counted
  const params = [...(after === null ? [] : [after]), ...(end === undefined ? [] : [end])]
  const buildBounds = (value: string) =>
    [
      ` and ${value} is not null`,
      ...(after === null ? [] : [` and ${value} > ?`]),
      ...(end === undefined ? [] : [` and ${value} <= ?`]),
    ].join('')
  // Also deletes the counters of values that no record has, in the same transaction: a concurrent write could give such a value to a record.
  await tx.run(
    `delete from ${VALUE_COUNT_TABLE} as c where c.model = ? and c.field = ?${buildBounds(buildCountedValueSql(dialect, field))}`,
    [model.name, field.name, ...params],
  )
  const column = `t.${quoteIdentifier(field.name)}`
  await insertValueCounts(tx, counted, { sql: buildBounds(column), params })
}

export async function rebuildNullCounter(
  tx: Transaction,
  dialect: Dialect,
  counted: ModelField,
): Promise<void> {
  await lockCounters(tx, dialect)
  const { model, field } = counted
  const params = [model.name, field.name]
  await tx.run(`delete from ${VALUE_COUNT_TABLE} where model = ? and field = ? and value = ''`, params)
  await insertValueCounts(tx, counted, { sql: ` and t.${quoteIdentifier(field.name)} is null`, params: [] })
}

async function insertValueCounts(
  tx: Transaction,
  { model, field }: ModelField,
  { sql: where, params }: SqlFragment,
): Promise<void> {
  await tx.run(
    `insert into ${VALUE_COUNT_TABLE} (model, field, value, n) ${buildValueCountSql(model, field, where)}`,
    [model.name, field.name, ...params],
  )
}

/** The value of the counter `c`, in the order of the column. The counter of null has none. */
function buildCountedValueSql(dialect: Dialect, field: Field): string {
  const [type, collation] = getColumn(dialect, field).type.split(' collate ')
  const value = `(case when c.value <> '' then cast(substr(c.value, 2) as ${type}) end)`
  return collation === undefined ? value : `${value} collate ${collation}`
}

/** Deletes the counters of fields that are not counted. */
export async function deleteStrayCounters(tx: Transaction, dialect: Dialect, model: Model): Promise<void> {
  await lockCounters(tx, dialect)
  const names = JSON.stringify(model.countedFields.map(({ name }) => name))
  await tx.run(
    `delete from ${VALUE_COUNT_TABLE} where model = ? and field not in (${dialect.json.unnest('text')})`,
    [model.name, names],
  )
}
