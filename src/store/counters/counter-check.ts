// Whether the counters say what the tables say. All that it reads must be of one moment.
import type { Field } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import {
  BLOCK_LEVELS,
  blockOf,
  COUNT_TABLE,
  countedFields,
  counterKeySql,
  VALUE_COUNT_TABLE,
  visibleSql,
  WHOLE_LEVEL,
} from './counted-fields.js'
import type { Queryable } from '../engine/database.js'
import { quote, tableName } from '../engine/names.js'

/** Where a counter and its table differ. */
export interface Difference {
  readonly model: string
  /** What is counted: the records of some ids, or those with a value in a field. */
  readonly what: string
  /** What the counter says. */
  readonly counted: number
  /** How many there are. */
  readonly stored: number
}

/** Ids that are looked at in one statement. */
export const PORTION_LEVEL = 20
const [SMALLEST] = BLOCK_LEVELS
const BLOCKS_IN_PORTION = 2 ** (PORTION_LEVEL - SMALLEST)
/** Whoever sees so many has seen enough. */
const MAX_VALUES_TOLD = 20

type Sums = Map<number, number>

/** Portion by portion, so that no statement takes long. */
export async function blockDifferences(db: Queryable, model: Model): Promise<Difference[]> {
  const differences: Difference[] = []
  const levels = [...BLOCK_LEVELS.slice(1), WHOLE_LEVEL]
  const sums = new Map<number, Sums>(levels.map((level) => [level, new Map<number, number>()]))
  for await (const portion of portionsOf(db, model)) {
    for (const { block, counted, stored } of await comparePortion(db, model, portion)) {
      if (counted !== stored) differences.push(differenceOf(model, SMALLEST, block, counted, stored))
      for (const [level, all] of sums) {
        const above = level === WHOLE_LEVEL ? 0 : blockOf(block, level - SMALLEST)
        all.set(above, (all.get(above) ?? 0) + stored)
      }
    }
  }
  for (const [level, all] of sums) differences.push(...(await compareSums(db, model, level, all)))
  return differences
}

/** Those in which there are ids, or counters. */
export async function* portionsOf(db: Queryable, model: Model): AsyncGenerator<number> {
  const table = quote(tableName(model.name))
  for (let next = 0; ;) {
    const [row] = await db.all(
      `select (select min("id") from ${table} where "id" >= ?) as "id", ` +
        `(select min(block) from ${COUNT_TABLE} where model = ? and level = ${SMALLEST} and block >= ?) as "block"`,
      [next * 2 ** PORTION_LEVEL, model.name, next * BLOCKS_IN_PORTION],
    )
    const found = [
      ...(row?.['id'] === null ? [] : [blockOf(Number(row?.['id']), PORTION_LEVEL)]),
      ...(row?.['block'] === null ? [] : [blockOf(Number(row?.['block']), PORTION_LEVEL - SMALLEST)]),
    ]
    if (found.length === 0) return
    const portion = Math.min(...found)
    yield portion
    next = portion + 1
  }
}

interface Compared {
  readonly block: number
  readonly counted: number
  readonly stored: number
}

async function comparePortion(db: Queryable, model: Model, portion: number): Promise<Compared[]> {
  const block = `t."id" / ${2 ** SMALLEST}`
  const ids = [portion * 2 ** PORTION_LEVEL, (portion + 1) * 2 ** PORTION_LEVEL]
  const rows = await db.all(
    `select block, sum(counted) as "counted", sum(stored) as "stored" from (` +
      `select block, n as counted, 0 as stored from ${COUNT_TABLE} ` +
      `where model = ? and level = ${SMALLEST} and block >= ? and block < ? ` +
      `union all select ${block}, 0, count(*) from ${quote(tableName(model.name))} as t ` +
      `where t."id" >= ? and t."id" < ? and ${visibleSql(model)} group by ${block}) as "both" group by block`,
    [model.name, ...ids.map((id) => blockOf(id, SMALLEST)), ...ids],
  )
  return rows.map((row) => ({
    block: Number(row['block']),
    counted: Number(row['counted']),
    stored: Number(row['stored']),
  }))
}

async function compareSums(db: Queryable, model: Model, level: number, sums: Sums): Promise<Difference[]> {
  const rows = await db.all(`select block, n from ${COUNT_TABLE} where model = ? and level = ?`, [
    model.name,
    level,
  ])
  const counts = new Map(rows.map((row) => [Number(row['block']), Number(row['n'])]))
  const blocks = new Set([...counts.keys(), ...sums.keys()])
  return [...blocks].flatMap((block) => {
    const [counted, stored] = [counts.get(block) ?? 0, sums.get(block) ?? 0]
    return counted === stored ? [] : [differenceOf(model, level, block, counted, stored)]
  })
}

function differenceOf(
  { name: model }: Model,
  level: number,
  block: number,
  counted: number,
  stored: number,
): Difference {
  const [first, last] = [block * 2 ** level, (block + 1) * 2 ** level - 1]
  return { model, what: level === WHOLE_LEVEL ? 'all' : `ids ${first} to ${last}`, counted, stored }
}

/** The first values whose counters are wrong. */
export async function valueDifferences(db: Queryable, model: Model): Promise<Difference[]> {
  const differences: Difference[] = []
  for (const field of countedFields(model)) differences.push(...(await compareValues(db, model, field)))
  return [...differences, ...(await strayCounters(db, model))]
}

async function compareValues(db: Queryable, model: Model, field: Field): Promise<Difference[]> {
  const rows = await db.all(
    `select value, sum(counted) as "counted", sum(stored) as "stored" from (` +
      `select value, n as counted, 0 as stored from ${VALUE_COUNT_TABLE} where model = ? and field = ? ` +
      `union all select ${counterKeySql(field)}, 0, count(*) from ${quote(tableName(model.name))} as t ` +
      `where ${visibleSql(model)} group by t.${quote(field.name)}) as "both" ` +
      `group by value having sum(counted) <> sum(stored) order by value limit ${MAX_VALUES_TOLD}`,
    [model.name, field.name],
  )
  return rows.map((row) => ({
    model: model.name,
    what: `${field.name} ${row['value'] === '' ? 'is null' : String(row['value']).replace('=', '= ')}`,
    counted: Number(row['counted']),
    stored: Number(row['stored']),
  }))
}

/** Of fields that are not counted. */
async function strayCounters(db: Queryable, model: Model): Promise<Difference[]> {
  const rows = await db.all(
    `select field, sum(n) as "counted" from ${VALUE_COUNT_TABLE} where model = ? group by field`,
    [model.name],
  )
  const counted = new Set(countedFields(model).map(({ name }) => name))
  return rows
    .filter((row) => !counted.has(String(row['field'])))
    .map((row) => ({
      ...{ model: model.name, what: `${String(row['field'])}, which is not counted` },
      ...{ counted: Number(row['counted']), stored: 0 },
    }))
}
