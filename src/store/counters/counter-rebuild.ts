// Counters put right while others write: each function is a transaction that ends soon, and what it made right stays right.
import type { Field } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import { PORTION_LEVEL } from './counter-check.js'
import {
  BLOCK_LEVELS,
  COUNT_TABLE,
  countedFields,
  VALUE_COUNT_TABLE,
  visibleSql,
  WHOLE_LEVEL,
} from './counted-fields.js'
import { columnOf } from '../sql/column.js'
import type { Dialect, Queryable, SqlValue, Transaction } from '../engine/database.js'
import { quote, tableName } from '../engine/names.js'
import { selectBlocks, selectValues, sumLevel } from './recount.js'

/** Rows of a table that are counted by their values in one transaction, unless one value has more. */
const ROWS_AT_ONCE = 100_000
const STALE_AT_ONCE = 500

const SMALL = BLOCK_LEVELS.filter((level) => level <= PORTION_LEVEL)
const LARGE = [...BLOCK_LEVELS.filter((level) => level > PORTION_LEVEL), WHOLE_LEVEL]
const [SMALLEST = 0] = SMALL

/** Whoever changes a record has counted it, or waits to do so until this transaction ends. */
async function lockCounters(tx: Transaction, { lockLog }: Dialect): Promise<void> {
  await tx.all(`${lockLog.with}select 1 as "one"${lockLog.from}`)
}

/** The smaller blocks of a portion of ids. */
export async function recountPortion(
  tx: Transaction,
  dialect: Dialect,
  model: Model,
  portion: number,
): Promise<void> {
  await lockCounters(tx, dialect)
  const blocksOf = (level: number) => {
    const many = 2 ** (PORTION_LEVEL - level)
    return [portion * many, (portion + 1) * many] as const
  }
  for (const level of SMALL) {
    await tx.run(
      `delete from ${COUNT_TABLE} where model = ? and level = ${level} and block >= ? and block < ?`,
      [model.name, ...blocksOf(level)],
    )
  }
  await tx.run(
    `insert into ${COUNT_TABLE} (model, level, block, n) ${selectBlocks(model, ' and t."id" >= ? and t."id" < ?')}`,
    [model.name, portion * 2 ** PORTION_LEVEL, (portion + 1) * 2 ** PORTION_LEVEL],
  )
  let below = SMALLEST
  for (const level of SMALL.slice(1)) {
    await sumLevel(tx, model, level, below, blocksOf(below))
    below = level
  }
}

/** The larger blocks, once the smaller ones are right. */
export async function recountLarge(tx: Transaction, dialect: Dialect, model: Model): Promise<void> {
  await lockCounters(tx, dialect)
  await tx.run(`delete from ${COUNT_TABLE} where model = ? and level in (${LARGE.join(', ')})`, [model.name])
  let below = SMALL.at(-1) ?? SMALLEST
  for (const level of LARGE) {
    await sumLevel(tx, model, level, below)
    below = level
  }
}

/** Where a portion of the values of a field ends, in the order of its index; undefined if it is the last. */
export async function endOfValues(
  db: Queryable,
  model: Model,
  field: Field,
  after: SqlValue,
): Promise<SqlValue | undefined> {
  const column = `t.${quote(field.name)}`
  const [row] = await db.all(
    `select ${column} as "end" from ${quote(tableName(model.name))} as t where ${column} is not null` +
      `${after === null ? '' : ` and ${column} > ?`} order by ${column} limit 1 offset ${ROWS_AT_ONCE}`,
    after === null ? [] : [after],
  )
  return row?.['end']
}

/** The values after one, up to another; from the first, or to the last, where there is none. */
export async function recountValues(
  tx: Transaction,
  dialect: Dialect,
  model: Model,
  field: Field,
  [after, end]: readonly [SqlValue, SqlValue | undefined],
): Promise<void> {
  await lockCounters(tx, dialect)
  const column = `t.${quote(field.name)}`
  const bounds = [
    ` and ${column} is not null`,
    ...(after === null ? [] : [` and ${column} > ?`]),
    ...(end === undefined ? [] : [` and ${column} <= ?`]),
  ].join('')
  await setValues(tx, model, field, bounds, [
    ...(after === null ? [] : [after]),
    ...(end === undefined ? [] : [end]),
  ])
}

export async function recountNull(
  tx: Transaction,
  dialect: Dialect,
  model: Model,
  field: Field,
): Promise<void> {
  await lockCounters(tx, dialect)
  const of = [model.name, field.name]
  await tx.run(`delete from ${VALUE_COUNT_TABLE} where model = ? and field = ? and value = ''`, of)
  await setValues(tx, model, field, ` and t.${quote(field.name)} is null`, [])
}

async function setValues(
  tx: Transaction,
  model: Model,
  field: Field,
  where: string,
  params: readonly SqlValue[],
): Promise<void> {
  await tx.run(
    `insert into ${VALUE_COUNT_TABLE} (model, field, value, n) ${selectValues(model, field, where)} ` +
      `on conflict (model, field, value) do update set n = excluded.n`,
    [model.name, field.name, ...params],
  )
}

/** Counters of values that no visible record holds, after this one; null is not among them. */
export async function staleValues(
  db: Queryable,
  dialect: Dialect,
  model: Model,
  field: Field,
  after: string,
): Promise<string[]> {
  const rows = await db.all(
    `select c.value as "value" from ${VALUE_COUNT_TABLE} as c where c.model = ? and c.field = ? and c.value > ? ` +
      `and ${isStale(dialect, model, field)} order by c.value limit ${STALE_AT_ONCE}`,
    [model.name, field.name, after],
  )
  return rows.map((row) => String(row['value']))
}

export async function dropStale(
  tx: Transaction,
  dialect: Dialect,
  model: Model,
  field: Field,
  values: readonly string[],
): Promise<void> {
  await lockCounters(tx, dialect)
  const among = `c.value in (${dialect.json.rows('text')})`
  await tx.run(
    `delete from ${VALUE_COUNT_TABLE} as c where c.model = ? and c.field = ? and ${among} and ${isStale(dialect, model, field)}`,
    [model.name, field.name, JSON.stringify(values)],
  )
}

/** Of a counter `c` of anything but null. What is compared is the column itself, which has an index. */
function isStale(dialect: Dialect, model: Model, field: Field): string {
  const type = columnOf(dialect, field).type.replace(/ collate .*/, '')
  const value = `case when c.value <> '' then cast(substr(c.value, 2) as ${type}) end`
  const holders = `select 1 from ${quote(tableName(model.name))} as t where t.${quote(field.name)} = ${value}`
  return `not exists (${holders} and ${visibleSql(model)})`
}

/** Counters of fields that are not counted. */
export async function dropStray(tx: Transaction, dialect: Dialect, model: Model): Promise<void> {
  await lockCounters(tx, dialect)
  const names = JSON.stringify(countedFields(model).map(({ name }) => name))
  await tx.run(
    `delete from ${VALUE_COUNT_TABLE} where model = ? and field not in (${dialect.json.rows('text')})`,
    [model.name, names],
  )
}
