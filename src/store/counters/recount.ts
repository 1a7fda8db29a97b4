// Counters made from the table: of a model that is new to them, or whose columns have changed.
import type { Field } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import {
  BLOCK_LEVELS,
  COUNT_TABLE,
  countedFields,
  counterKeySql,
  VALUE_COUNT_TABLE,
  visibleSql,
  WHOLE_LEVEL,
} from './counted-fields.js'
import type { Dialect, Transaction } from '../engine/database.js'
import { quote, tableName } from '../engine/names.js'

/** In the transaction that changes the table: nobody writes it until that ends. */
export async function countRecords(tx: Transaction, dialect: Dialect, model: Model): Promise<void> {
  for (const lock of dialect.lockTable(quote(tableName(model.name)))) await tx.run(lock)
  await forgetCounts(tx, model.name)
  await countBlocks(tx, model)
  await sumBlocks(tx, model)
  for (const field of countedFields(model)) {
    await tx.run(`insert into ${VALUE_COUNT_TABLE} (model, field, value, n) ${selectValues(model, field)}`, [
      model.name,
      field.name,
    ])
  }
}

export async function forgetCounts(tx: Transaction, model: string): Promise<void> {
  for (const table of [COUNT_TABLE, VALUE_COUNT_TABLE])
    await tx.run(`delete from ${table} where model = ?`, [model])
}

/** The smallest blocks are counted, those above are sums. */
async function countBlocks(tx: Transaction, model: Model): Promise<void> {
  await tx.run(`insert into ${COUNT_TABLE} (model, level, block, n) ${selectBlocks(model)}`, [model.name])
}

/** Its parameter is the model; a condition on ids may follow. */
export function selectBlocks(model: Model, where = ''): string {
  const block = `t."id" / ${2 ** BLOCK_LEVELS[0]}`
  return (
    `select cast(? as text), ${BLOCK_LEVELS[0]}, ${block}, count(*) from ${quote(tableName(model.name))} as t ` +
    `where ${visibleSql(model)}${where} group by ${block}`
  )
}

/** Its parameters are the model and the field; a condition on the column may follow. */
export function selectValues(model: Model, field: Field, where = ''): string {
  return (
    `select cast(? as text), cast(? as text), ${counterKeySql(field)}, count(*) from ${quote(tableName(model.name))} as t ` +
    `where ${visibleSql(model)}${where} group by t.${quote(field.name)}`
  )
}

async function sumBlocks(tx: Transaction, model: Model): Promise<void> {
  let below: number = BLOCK_LEVELS[0]
  for (const level of BLOCK_LEVELS.slice(1)) {
    await sumLevel(tx, model, level, below)
    below = level
  }
  await sumLevel(tx, model, WHOLE_LEVEL, below)
}

/** The blocks of a level from those of the level below; from some of them only, if they are named. */
export async function sumLevel(
  tx: Transaction,
  { name }: Model,
  level: number,
  below: number,
  some?: readonly [first: number, end: number],
): Promise<void> {
  const block = level === WHOLE_LEVEL ? '0' : `block / ${2 ** (level - below)}`
  const among = some ? ' and block >= ? and block < ?' : ''
  await tx.run(
    `insert into ${COUNT_TABLE} (model, level, block, n) select model, ${level}, ${block}, sum(n) ` +
      `from ${COUNT_TABLE} where model = ? and level = ${below}${among} group by 1, 2, 3`,
    [name, ...(some ?? [])],
  )
}
