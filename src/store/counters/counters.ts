// Updates the counters from the Changes of a transaction, in that transaction, while it has the lock of the Log.
import type { Model } from '../../model/definition/model.js'
import type { Values } from '../../model/values/value.js'
import type { Action, Change } from '../../wire.js'
import {
  toBlock,
  COUNT_TABLE,
  toCounterKey,
  COUNTER_LEVELS,
  VALUE_COUNT_TABLE,
  SMALLEST_LEVEL,
  TOTAL_LEVEL,
} from './counted-fields.js'
import type { SqlRows, SqlValue, Transaction } from '../engine/database.js'
import { flattenRows, repeatSql, SizedStatements } from '../sql/bulk-insert.js'
import type { Tables } from '../sql/table.js'

/** The part of a Change that the counters need. */
export interface CountedChange {
  readonly model: string
  readonly id: number
  readonly action: Action
  readonly changes: Change['changes']
  /** All values of an updated record, including unchanged ones. They are not logged. */
  readonly currentValues?: Values | undefined
}

interface CounterDelta {
  readonly key: readonly [string, SqlValue, SqlValue]
  delta: number
}

/** Counter deltas by the text of their key. */
type CounterDeltas = Map<string, CounterDelta>

/** The numbers of rows that a statement can have. */
const COUNTER_BATCH_ROWS = [64, 16, 8, 7, 6, 5, 4, 3, 2, 1] as const

/**
 * Adds the deltas of the Changes to the counters. Must run after the statement that takes the lock of the Log, which the transaction has
 * until its end: so the rows of the counters cause no additional waiting and no deadlock.
 */
export async function updateCounters(
  tx: Transaction,
  tables: Tables,
  changes: readonly CountedChange[],
): Promise<void> {
  const values = new Map<string, CounterDelta>()
  const blockDeltas = new Map<Model, Map<number, number>>()
  for (const change of changes) {
    const model = tables.catalog.find(change.model)
    // A model that is not in the catalog has no table to count.
    if (!model) continue
    const step = countVisibleAfter(model, change) - countVisibleBefore(model, change)
    if (step !== 0) addBlockDelta(blockDeltas, model, toBlock(change.id, SMALLEST_LEVEL), step)
    addValueDeltas(values, tables, model, change)
  }
  const blocks = sumBlockDeltas(blockDeltas)
  if (blocks.size > 0) await runInBatches(tx, UPSERT_BLOCKS, toCounterRows(blocks))
  if (values.size === 0) return
  await runInBatches(tx, UPSERT_VALUES, toCounterRows(values))
  const lowered = [...values.values()].filter(({ delta }) => delta < 0)
  await runInBatches(
    tx,
    DELETE_EMPTY_VALUES,
    lowered.map(({ key }) => key),
  )
}

/** Returns 1 if the record was counted before the Change, else 0. */
function countVisibleBefore({ archived }: Model, change: CountedChange): number {
  if (change.action === 'create') return 0
  return archived && isArchivedIn(change, 'before') ? 0 : 1
}

function countVisibleAfter({ archived }: Model, change: CountedChange): number {
  if (change.action === 'delete') return 0
  return archived && isArchivedIn(change, 'after') ? 0 : 1
}

function isArchivedIn(change: CountedChange, side: 'before' | 'after'): boolean {
  const logged = change.changes['archived']
  if (logged) return logged[side] === true
  return change.action === 'update' && requireCurrentValues(change)['archived'] === true
}

function addBlockDelta(
  steps: Map<Model, Map<number, number>>,
  model: Model,
  block: number,
  step: number,
): void {
  const ofModel = steps.get(model) ?? new Map<number, number>()
  ofModel.set(block, (ofModel.get(block) ?? 0) + step)
  steps.set(model, ofModel)
}

/** Each smallest block is part of exactly one block of every larger level. */
function sumBlockDeltas(steps: ReadonlyMap<Model, ReadonlyMap<number, number>>): CounterDeltas {
  const counts: CounterDeltas = new Map<string, CounterDelta>()
  for (const [{ name }, ofModel] of steps)
    for (const [block, step] of ofModel)
      for (const level of COUNTER_LEVELS) {
        const whole = level === TOTAL_LEVEL ? 0 : toBlock(block, level - SMALLEST_LEVEL)
        addDelta(counts, [name, level, whole], step)
      }
  return counts
}

/** Adds the deltas of the values of counted fields. An update that changes neither these fields nor `archived` adds none. */
function addValueDeltas(
  counts: CounterDeltas,
  { dialect }: Tables,
  model: Model,
  change: CountedChange,
): void {
  const { action, changes } = change
  for (const field of model.countedFields) {
    const logged = changes[field.name]
    if (action === 'update' && !logged && !(model.archived && changes['archived'])) continue
    const same = action === 'update' && !logged ? (requireCurrentValues(change)[field.name] ?? null) : null
    const { before, after } = logged ?? { before: same, after: same }
    const key = (value: Change['changes'][string]['before']) =>
      [model.name, field.name, toCounterKey(dialect, field, value)] as const
    if (countVisibleBefore(model, change) === 1) addDelta(counts, key(before), -1)
    if (countVisibleAfter(model, change) === 1) addDelta(counts, key(after), 1)
  }
}

function requireCurrentValues({ model, id, currentValues }: CountedChange): Values {
  if (!currentValues) throw new Error(`the change of ${model} ${id} lacks currentValues`)
  return currentValues
}

function addDelta(counts: CounterDeltas, key: CounterDelta['key'], step: number): void {
  const name = key.join('\n')
  const counter = counts.get(name)
  if (counter) counter.delta += step
  else counts.set(name, { key, delta: step })
}

function toCounterRows(counts: CounterDeltas): SqlValue[][] {
  return [...counts.values()].flatMap(({ key, delta }) => (delta === 0 ? [] : [[...key, delta]]))
}

const UPSERT_BLOCKS = buildCounterUpsert(COUNT_TABLE, 'model, level, block')
const UPSERT_VALUES = buildCounterUpsert(VALUE_COUNT_TABLE, 'model, field, value')
/** Deletes the counters of values that no record has any more. */
const DELETE_EMPTY_VALUES = new SizedStatements(
  COUNTER_BATCH_ROWS,
  (rowCount) =>
    `delete from ${VALUE_COUNT_TABLE} where n = 0 and (${repeatSql(rowCount, '(model = ? and field = ? and value = ?)', ' or ')})`,
)

function buildCounterUpsert(table: string, key: string): SizedStatements {
  return new SizedStatements(
    COUNTER_BATCH_ROWS,
    (rowCount) =>
      `insert into ${table} (${key}, n) values ${repeatSql(rowCount, '(?, ?, ?, ?)', ', ')} ` +
      `on conflict (${key}) do update set n = ${table}.n + excluded.n`,
  )
}

async function runInBatches(tx: Transaction, statements: SizedStatements, rows: SqlRows): Promise<void> {
  for (let start = 0; start < rows.length;) {
    const [rowCount, sql] = statements.select(rows.length - start)
    const params = flattenRows(rows.slice(start, start + rowCount))
    start += rowCount
    // Sent together with the COMMIT, like the statement of the Log.
    await tx.sendWithCommit(sql, params)
  }
}
