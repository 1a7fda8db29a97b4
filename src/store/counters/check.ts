// Compares the counters with the tables. Everything must be read from one snapshot.
import type { Field } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import {
  BLOCK_LEVELS,
  toBlock,
  COUNT_TABLE,
  buildCounterKeySql,
  VALUE_COUNT_TABLE,
  buildNotArchivedSql,
  SMALLEST_LEVEL,
  TOTAL_LEVEL,
} from './counted-fields.js'
import type { Queryable } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'

/** A counter that differs from its table. */
export interface CounterMismatch {
  readonly model: string
  /** The subject of the counter: a range of ids, or a value of a field. */
  readonly what: string
  /** The value of the counter. */
  readonly counted: number
  /** The number of records in the table. */
  readonly stored: number
}

/** One statement reads a batch of 2^BATCH_LEVEL ids. */
export const BATCH_LEVEL = 20
const BLOCKS_PER_BATCH = 2 ** (BATCH_LEVEL - SMALLEST_LEVEL)
/** Limits the mismatches that are reported for each field. */
const MAX_REPORTED_VALUES = 20

type BlockSums = Map<number, number>

/** Finds block counters that differ from the table. Reads ids in batches, so that every statement is short. */
export async function findBlockMismatches(db: Queryable, model: Model): Promise<CounterMismatch[]> {
  const mismatches: CounterMismatch[] = []
  const levels = [...BLOCK_LEVELS.slice(1), TOTAL_LEVEL]
  const sums = new Map<number, BlockSums>(levels.map((level) => [level, new Map<number, number>()]))
  for await (const batch of iterateIdBatches(db, model)) {
    for (const comparison of await compareIdBatch(db, model, batch)) {
      const { block, counted, stored } = comparison
      if (counted !== stored) mismatches.push(buildBlockMismatch(model, SMALLEST_LEVEL, comparison))
      for (const [level, all] of sums) {
        const above = level === TOTAL_LEVEL ? 0 : toBlock(block, level - SMALLEST_LEVEL)
        all.set(above, (all.get(above) ?? 0) + stored)
      }
    }
  }
  for (const [level, all] of sums) mismatches.push(...(await compareBlockSums(db, model, level, all)))
  return mismatches
}

/** Iterates over the batches that contain ids or counters. */
export async function* iterateIdBatches(db: Queryable, model: Model): AsyncGenerator<number> {
  const table = quoteIdentifier(toTableName(model.name))
  for (let next = 0; ;) {
    const [row] = await db.all(
      `select (select min("id") from ${table} where "id" >= ?) as "id", ` +
        `(select min(block) from ${COUNT_TABLE} where model = ? and level = ${SMALLEST_LEVEL} and block >= ?) as "block"`,
      [next * 2 ** BATCH_LEVEL, model.name, next * BLOCKS_PER_BATCH],
    )
    const batches = [
      ...(row?.['id'] === null ? [] : [toBlock(Number(row?.['id']), BATCH_LEVEL)]),
      ...(row?.['block'] === null ? [] : [toBlock(Number(row?.['block']), BATCH_LEVEL - SMALLEST_LEVEL)]),
    ]
    if (batches.length === 0) return
    const batch = Math.min(...batches)
    yield batch
    next = batch + 1
  }
}

interface BlockComparison {
  readonly block: number
  readonly counted: number
  readonly stored: number
}

async function compareIdBatch(db: Queryable, model: Model, batch: number): Promise<BlockComparison[]> {
  const block = `t."id" / ${2 ** SMALLEST_LEVEL}`
  const ids = [batch * 2 ** BATCH_LEVEL, (batch + 1) * 2 ** BATCH_LEVEL]
  const rows = await db.all(
    `select block, sum(counted) as "counted", sum(stored) as "stored" from (` +
      `select block, n as counted, 0 as stored from ${COUNT_TABLE} ` +
      `where model = ? and level = ${SMALLEST_LEVEL} and block >= ? and block < ? ` +
      `union all select ${block}, 0, count(*) from ${quoteIdentifier(toTableName(model.name))} as t ` +
      `where t."id" >= ? and t."id" < ? and ${buildNotArchivedSql(model)} group by ${block}) as "both" group by block`,
    [model.name, ...ids.map((id) => toBlock(id, SMALLEST_LEVEL)), ...ids],
  )
  return rows.map((row) => ({
    block: Number(row['block']),
    counted: Number(row['counted']),
    stored: Number(row['stored']),
  }))
}

async function compareBlockSums(
  db: Queryable,
  model: Model,
  level: number,
  sums: BlockSums,
): Promise<CounterMismatch[]> {
  const rows = await db.all(`select block, n from ${COUNT_TABLE} where model = ? and level = ?`, [
    model.name,
    level,
  ])
  const counts = new Map(rows.map((row) => [Number(row['block']), Number(row['n'])]))
  const blocks = new Set([...counts.keys(), ...sums.keys()])
  return [...blocks].flatMap((block) => {
    const [counted, stored] = [counts.get(block) ?? 0, sums.get(block) ?? 0]
    return counted === stored ? [] : [buildBlockMismatch(model, level, { block, counted, stored })]
  })
}

function buildBlockMismatch(
  { name: model }: Model,
  level: number,
  { block, counted, stored }: BlockComparison,
): CounterMismatch {
  const [first, last] = [block * 2 ** level, (block + 1) * 2 ** level - 1]
  return { model, what: level === TOTAL_LEVEL ? 'all' : `ids ${first} to ${last}`, counted, stored }
}

/** Finds value counters that differ from the table. */
export async function findValueMismatches(db: Queryable, model: Model): Promise<CounterMismatch[]> {
  const mismatches: CounterMismatch[] = []
  for (const field of model.countedFields) mismatches.push(...(await compareValueCounters(db, model, field)))
  return [...mismatches, ...(await findStrayCounters(db, model))]
}

async function compareValueCounters(db: Queryable, model: Model, field: Field): Promise<CounterMismatch[]> {
  const rows = await db.all(
    `select value, sum(counted) as "counted", sum(stored) as "stored" from (` +
      `select value, n as counted, 0 as stored from ${VALUE_COUNT_TABLE} where model = ? and field = ? ` +
      `union all select ${buildCounterKeySql(field)}, 0, count(*) from ${quoteIdentifier(toTableName(model.name))} as t ` +
      `where ${buildNotArchivedSql(model)} group by t.${quoteIdentifier(field.name)}) as "both" ` +
      `group by value having sum(counted) <> sum(stored) order by value limit ${MAX_REPORTED_VALUES}`,
    [model.name, field.name],
  )
  return rows.map((row) => ({
    model: model.name,
    what: `${field.name} ${row['value'] === '' ? 'is null' : String(row['value']).replace('=', '= ')}`,
    counted: Number(row['counted']),
    stored: Number(row['stored']),
  }))
}

/** Finds counters of fields that are not counted. */
async function findStrayCounters(db: Queryable, model: Model): Promise<CounterMismatch[]> {
  const rows = await db.all(
    `select field, sum(n) as "counted" from ${VALUE_COUNT_TABLE} where model = ? group by field`,
    [model.name],
  )
  const counted = new Set(model.countedFields.map(({ name }) => name))
  return rows
    .filter((row) => !counted.has(String(row['field'])))
    .map((row) => ({
      model: model.name,
      what: `${String(row['field'])}, which is not counted`,
      counted: Number(row['counted']),
      stored: 0,
    }))
}
