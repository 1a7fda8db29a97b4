// Rebuilds the counters of a model during a schema change, when the model has none yet or its columns have changed.
import type { Field } from '../../model/values/field.js'
import {
  BLOCK_LEVELS,
  COUNT_TABLE,
  buildCounterKeySql,
  VALUE_COUNT_TABLE,
  buildNotArchivedSql,
  SMALLEST_LEVEL,
  TOTAL_LEVEL,
  type CountedModel,
} from './counted-fields.js'
import type { Dialect, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'

/** Rebuilds all counters of a model, in the transaction that changes its table. Locks the table until the transaction ends. */
export async function rebuildModelCounters(
  tx: Transaction,
  dialect: Dialect,
  model: CountedModel,
): Promise<void> {
  for (const lock of dialect.lockTable(quoteIdentifier(toTableName(model.name)))) await tx.run(lock)
  await deleteCounters(tx, model.name)
  await insertSmallestBlocks(tx, model)
  await insertLargerBlocks(tx, model)
  for (const field of model.countedFields) {
    await tx.run(
      `insert into ${VALUE_COUNT_TABLE} (model, field, value, n) ${buildValueCountSql(model, field)}`,
      [model.name, field.name],
    )
  }
}

export async function deleteCounters(tx: Transaction, model: string): Promise<void> {
  for (const table of [COUNT_TABLE, VALUE_COUNT_TABLE])
    await tx.run(`delete from ${table} where model = ?`, [model])
}

/** Counts the records in the smallest blocks. Larger blocks are sums of these. */
async function insertSmallestBlocks(tx: Transaction, model: CountedModel): Promise<void> {
  await tx.run(`insert into ${COUNT_TABLE} (model, level, block, n) ${buildBlockCountSql(model)}`, [
    model.name,
  ])
}

/** Builds a select of the smallest blocks. Its parameter is the model; `where` is an additional condition on ids. */
export function buildBlockCountSql(model: CountedModel, where = ''): string {
  const block = `t."id" / ${2 ** SMALLEST_LEVEL}`
  return (
    `select cast(? as text), ${SMALLEST_LEVEL}, ${block}, count(*) from ${quoteIdentifier(toTableName(model.name))} as t ` +
    `where ${buildNotArchivedSql(model)}${where} group by ${block}`
  )
}

/** Builds a select of the value counters. Its parameters are the model and the field; `where` is an additional condition on the column. */
export function buildValueCountSql(model: CountedModel, field: Pick<Field, 'name'>, where = ''): string {
  return (
    `select cast(? as text), cast(? as text), ${buildCounterKeySql(field)}, count(*) from ${quoteIdentifier(toTableName(model.name))} as t ` +
    `where ${buildNotArchivedSql(model)}${where} group by t.${quoteIdentifier(field.name)}`
  )
}

async function insertLargerBlocks(tx: Transaction, model: CountedModel): Promise<void> {
  let below: number = SMALLEST_LEVEL
  for (const level of BLOCK_LEVELS.slice(1)) {
    await insertLevelSums(tx, model, { level, below })
    below = level
  }
  await insertLevelSums(tx, model, { level: TOTAL_LEVEL, below })
}

export interface LevelSums {
  readonly level: number
  /** The level of the smaller blocks that are summed. */
  readonly below: number
  /** Limits the sums to a range of the smaller blocks. */
  readonly blockRange?: readonly [first: number, end: number]
}

/** Inserts the blocks of a level as sums of the smaller blocks of another level. */
export async function insertLevelSums(
  tx: Transaction,
  { name }: CountedModel,
  { level, below, blockRange }: LevelSums,
): Promise<void> {
  const block = level === TOTAL_LEVEL ? '0' : `block / ${2 ** (level - below)}`
  const rangeFilter = blockRange ? ' and block >= ? and block < ?' : ''
  await tx.run(
    `insert into ${COUNT_TABLE} (model, level, block, n) select model, ${level}, ${block}, sum(n) ` +
      `from ${COUNT_TABLE} where model = ? and level = ${below}${rangeFilter} group by 1, 2, 3`,
    [name, ...(blockRange ?? [])],
  )
}
