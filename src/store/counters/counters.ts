// Totals that are kept: raised and lowered by the Changes of a transaction, in that transaction, behind the lock of the Log.
import type { Model } from '../../model/definition/model.js'
import type { Values } from '../../model/values/value.js'
import type { Action, Change } from '../../wire.js'
import {
  blockOf,
  COUNT_TABLE,
  countedFields,
  counterKey,
  LEVELS,
  VALUE_COUNT_TABLE,
  WHOLE_LEVEL,
} from './counted-fields.js'
import type { SqlValue, Transaction } from '../engine/database.js'
import type { Tables } from '../sql/table.js'

/** What counters have to know of a Change. */
export interface CountedChange {
  readonly model: string
  readonly id: number
  readonly action: Action
  readonly changes: Change['changes']
  /** Of an update: all that the record holds now, also what has not changed. It is not logged. */
  readonly held?: Values | undefined
}

interface Count {
  readonly key: readonly [string, SqlValue, SqlValue]
  n: number
}

/** By what the key says. */
type Counts = Map<string, Count>

const [SMALLEST_LEVEL] = LEVELS

/** Rows in one statement. Few sizes, so that few statements are prepared. */
const AT_ONCE = [64, 16, 8, 7, 6, 5, 4, 3, 2, 1] as const

/**
 * Nobody waits for a row of these tables who would not wait for the Log: its lock is held until the end of the transaction. So these
 * statements must come after the one that takes it.
 */
export async function count(
  tx: Transaction,
  tables: Tables,
  changes: readonly CountedChange[],
): Promise<void> {
  const values = new Map<string, Count>()
  const steps = new Map<Model, Map<number, number>>()
  for (const change of changes) {
    const model = tables.catalog.known(change.model)
    // Records of no model have no table that could be counted.
    if (!model) continue
    const step = visibleAfter(model, change) - visibleBefore(model, change)
    if (step !== 0) addStep(steps, model, blockOf(change.id, SMALLEST_LEVEL), step)
    addValues(values, tables, model, change)
  }
  const blocks = blocksOf(steps)
  if (blocks.size > 0) await inPortions(tx, RAISE_BLOCKS, rowsOf(blocks))
  if (values.size === 0) return
  await inPortions(tx, RAISE_VALUES, rowsOf(values))
  const lowered = [...values.values()].filter(({ n }) => n < 0)
  await inPortions(
    tx,
    DROP_EMPTY,
    lowered.map(({ key }) => key),
  )
}

/** 1 if it was counted before the Change, or 0. */
function visibleBefore({ archived }: Model, change: CountedChange): number {
  if (change.action === 'create') return 0
  return archived && archivedIn(change, 'before') ? 0 : 1
}

function visibleAfter({ archived }: Model, change: CountedChange): number {
  if (change.action === 'delete') return 0
  return archived && archivedIn(change, 'after') ? 0 : 1
}

function archivedIn(change: CountedChange, side: 'before' | 'after'): boolean {
  const told = change.changes['archived']
  if (told) return told[side] === true
  return change.action === 'update' && heldBy(change)['archived'] === true
}

function addStep(steps: Map<Model, Map<number, number>>, model: Model, block: number, step: number): void {
  const ofModel = steps.get(model) ?? new Map<number, number>()
  ofModel.set(block, (ofModel.get(block) ?? 0) + step)
  steps.set(model, ofModel)
}

/** A small block lies whole in one block of each greater level. */
function blocksOf(steps: ReadonlyMap<Model, ReadonlyMap<number, number>>): Counts {
  const counts: Counts = new Map<string, Count>()
  for (const [{ name }, ofModel] of steps)
    for (const [block, step] of ofModel)
      for (const level of LEVELS) {
        const whole = level === WHOLE_LEVEL ? 0 : blockOf(block, level - SMALLEST_LEVEL)
        add(counts, [name, level, whole], step)
      }
  return counts
}

/** An update that changes neither what is counted nor whether the record is counted costs nothing. */
function addValues(counts: Counts, { dialect }: Tables, model: Model, change: CountedChange): void {
  const { action, changes } = change
  for (const field of countedFields(model)) {
    const told = changes[field.name]
    if (action === 'update' && !told && !(model.archived && changes['archived'])) continue
    const same = action === 'update' && !told ? (heldBy(change)[field.name] ?? null) : null
    const { before, after } = told ?? { before: same, after: same }
    const key = (value: Change['changes'][string]['before']) =>
      [model.name, field.name, counterKey(dialect, field, value)] as const
    if (visibleBefore(model, change) === 1) add(counts, key(before), -1)
    if (visibleAfter(model, change) === 1) add(counts, key(after), 1)
  }
}

function heldBy({ model, id, held }: CountedChange): Values {
  if (!held) throw new Error(`the Change of ${model} ${id} does not say what the record holds`)
  return held
}

function add(counts: Counts, key: Count['key'], step: number): void {
  const name = key.join('\n')
  const known = counts.get(name)
  if (known) known.n += step
  else counts.set(name, { key, n: step })
}

function rowsOf(counts: Counts): SqlValue[][] {
  return [...counts.values()].flatMap(({ key, n }) => (n === 0 ? [] : [[...key, n]]))
}

/** The text for each number of rows, made once. */
type Texts = (many: number) => string

const RAISE_BLOCKS = raising(COUNT_TABLE, 'model, level, block')
const RAISE_VALUES = raising(VALUE_COUNT_TABLE, 'model, field, value')
/** A value that nobody holds any more is not remembered. */
const DROP_EMPTY = inSizes(
  (many) =>
    `delete from ${VALUE_COUNT_TABLE} where n = 0 and (${repeat(many, '(model = ? and field = ? and value = ?)', ' or ')})`,
)

function raising(table: string, key: string): Texts {
  return inSizes(
    (many) =>
      `insert into ${table} (${key}, n) values ${repeat(many, '(?, ?, ?, ?)', ', ')} ` +
      `on conflict (${key}) do update set n = ${table}.n + excluded.n`,
  )
}

function inSizes(make: Texts): Texts {
  const made = new Map(AT_ONCE.map((many) => [many as number, make(many)]))
  return (many) => made.get(many) ?? make(many)
}

function repeat(many: number, part: string, between: string): string {
  return Array.from({ length: many }, () => part).join(between)
}

async function inPortions(
  tx: Transaction,
  texts: Texts,
  rows: readonly (readonly SqlValue[])[],
): Promise<void> {
  for (let start = 0; start < rows.length;) {
    const many = AT_ONCE.find((size) => size <= rows.length - start) ?? 1
    const params = rows.slice(start, start + many).flat()
    start += many
    // As the Log does: it travels with the COMMIT.
    if (tx.last) tx.last(texts(many), params)
    else await tx.run(texts(many), params)
  }
}
