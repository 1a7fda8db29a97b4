// A table as it was: the rows that have not changed since, and the others as their Changes tell.
import { VersoError } from '../../errors.js'
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import type { Value } from '../../model/values/value.js'
import { toValues } from '../../model/definition/record-values.js'
import type { Change } from '../../wire.js'
import { buildValueColumns, encodeCandidateRow } from '../records/evaluate-values.js'
import { findByIds } from '../records/bulk.js'
import type { Queryable } from '../engine/database.js'
import { CHANGE_COLUMNS, FROM_LOG, CHANGE_HEADER_COLUMNS, toChange } from './log.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { quoteIdentifier } from '../engine/names.js'
import { originIn, originOf, WayBack, type Current } from './past.js'
import type { RecordState } from './record-state.js'
import type { Table } from '../sql/table.js'

/** A record that has changed since: as it was, and as it is. */
export interface Changed {
  readonly was: RecordState
  /** The version that it had. */
  readonly version: number
  readonly today: RecordState
}

const MAX_CHANGES = 20_000
const MAX_CHARACTERS = 32_000_000
const CHANGES_AT_ONCE = 1_000
/** Each may be as large as it is. */
const RECORDS_AT_ONCE = 50

/** Those with a Change after this one. All that it reads must be of one moment. */
export async function changedSince(db: Queryable, table: Table, seq: number): Promise<Map<number, Changed>> {
  const { model } = table
  const changes = await changesAfter(db, model.name, seq)
  const all = [...changes.keys()]
  const changed = new Map<number, Changed>()
  let held = 0
  for (let start = 0; start < all.length; start += RECORDS_AT_ONCE) {
    const ids = all.slice(start, start + RECORDS_AT_ONCE)
    const now = await currentOf(db, table, ids)
    const lost = ids.filter((id) => !now.has(id))
    const firsts = await outermost(db, table, 'min', lost)
    const makers = await outermost(db, table, 'max', ids, seq)
    for (const id of ids) {
      const current = now.get(id)
      const own = changes.get(id) ?? []
      const origin = current ? originIn(current.values) : originOf(firsts.get(id))
      const back = new WayBack(table, origin, current, own[0])
      for (const change of own) back.pass(change)
      const first = back.pass(makers.get(id))
      if (!first) continue
      const today: RecordState = current?.values ?? 'gone'
      const was = { was: first.before, version: first.change.version - 1, today }
      held += sizeOf(was.was)
      if (held > MAX_CHARACTERS) throw tooMuch(model.name)
      changed.set(id, was)
    }
  }
  return changed
}

/** The Changes of each record, newest first. */
async function changesAfter(db: Queryable, model: string, seq: number): Promise<Map<number, Change[]>> {
  const [size] = await db.all(
    `select count(*) as "count", coalesce(sum(octet_length(changes)), 0) as "characters" from ${LOG_TABLE} where model = ? and seq > ?`,
    [model, seq],
  )
  if (Number(size?.['count']) > MAX_CHANGES || Number(size?.['characters']) > MAX_CHARACTERS)
    throw tooMuch(model)
  const changes = new Map<number, Change[]>()
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const rows = await db.all(
      `select ${CHANGE_COLUMNS} ${FROM_LOG} where l.model = ? and l.seq > ? and l.seq < ? order by l.seq desc limit ?`,
      [model, seq, before, CHANGES_AT_ONCE],
    )
    for (const change of rows.map(toChange)) {
      before = change.seq
      const known = changes.get(change.id)
      if (known) known.push(change)
      else changes.set(change.id, [change])
    }
    if (rows.length < CHANGES_AT_ONCE) return changes
  }
}

function tooMuch(model: string): VersoError {
  const most = `at most ${MAX_CHANGES} Changes are taken back, of records that are not too large`
  return new VersoError(
    'bad-request',
    `Too much of ${model} has changed since: ${most}. Ask for a later moment`,
  )
}

/** About as many characters as it takes to tell it. */
function sizeOf(state: RecordState): number {
  if (typeof state === 'string') return 0
  const lengthOf = (value: Value) =>
    typeof value === 'string' ? value.length : typeof value === 'object' ? JSON.stringify(value).length : 8
  return Object.values(state).reduce<number>((sum, value) => sum + lengthOf(value), 0)
}

async function currentOf(db: Queryable, table: Table, ids: readonly number[]): Promise<Map<number, Current>> {
  const records = await findByIds(db, table, ids, { select: table.own })
  return new Map(
    records.map((record) => [record.id, { version: record.version, values: toValues(table.model, record) }]),
  )
}

/** The first Change of each record, or the last one up to a number. */
async function outermost(
  db: Queryable,
  { model, dialect }: Table,
  which: 'min' | 'max',
  ids: readonly number[],
  upTo = Number.MAX_SAFE_INTEGER,
): Promise<Map<number, Change>> {
  if (ids.length === 0) return new Map()
  const own = `model = ? and record in (${dialect.json.unnest('integer')}) and seq <= ?`
  const rows = await db.all(
    `select ${CHANGE_HEADER_COLUMNS} ${FROM_LOG} join (select record, ${which}(version) as "one" from ${LOG_TABLE} ` +
      `where ${own} group by record) as "outer" on "outer".record = l.record and "outer"."one" = l.version where l.model = ?`,
    [model.name, JSON.stringify(ids), upTo, model.name],
  )
  return new Map(rows.map(toChange).map((change) => [change.id, change]))
}

/** The table, in which these records stand as they were; those that were not there do not. */
export function tableWith(table: Table, changed: ReadonlyMap<number, Changed>): Table {
  const { dialect, name } = table
  const fields = table.storedFields.filter(isAsked)
  const columns = buildValueColumns(fields)
  const rows = [...changed].flatMap(([id, { was, version }]) =>
    typeof was === 'string' ? [] : [encodeCandidateRow(dialect, fields, { id, version, values: was })],
  )
  const names = columns.map((column) => quoteIdentifier(column.name)).join(', ')
  const [ids, given] = [JSON.stringify([...changed.keys()]), JSON.stringify(rows)]
  return {
    ...table,
    historicalRows: (mark) =>
      `(select ${names} from ${name} where "id" not in (${dialect.json.unnest('integer', mark(ids))}) ` +
      `union all ${dialect.json.recordset(columns, mark(given))})`,
  }
}

/** Nobody asks for files and secrets. */
function isAsked(field: Field): boolean {
  return getStorage(field) !== 'file' && field.secret === undefined
}
