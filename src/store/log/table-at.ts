// A table at a point in time: the rows that have not changed since, and the others with their earlier values.
import { VersoError } from '../../errors.js'
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import type { Value } from '../../model/values/value.js'
import { buildValueColumns, encodeCandidateRow } from '../records/evaluate-values.js'
import type { Queryable } from '../engine/database.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { quoteIdentifier } from '../engine/names.js'
import type { Table } from '../sql/table.js'
import { LOGGED_CHANGES, readChangesBackwards, readOutermostChanges } from './change-pages.js'
import type { LoggedChange } from './log.js'
import { findCreation, Rewind, type RecordState } from './rewind.js'
import { readCurrentRecords } from './timeline.js'

/** A record that has changed since the point in time. */
export interface ChangedRecord {
  readonly before: RecordState
  /** The version at the point in time. */
  readonly version: number
  readonly today: RecordState
}

const MAX_CHANGES = 20_000
const MAX_CHARACTERS = 32_000_000
/** Records have no size limit, so batches are small. */
const RECORDS_PER_BATCH = 50

/** Finds the records with a Change after this sequence number. `db` must read from one snapshot. */
export async function findChangedRecords(
  db: Queryable,
  table: Table,
  seq: number,
): Promise<Map<number, ChangedRecord>> {
  const { model } = table
  const changesById = await readChangesAfter(db, model.name, seq)
  const all = [...changesById.keys()]
  const changed = new Map<number, ChangedRecord>()
  let characters = 0
  for (let start = 0; start < all.length; start += RECORDS_PER_BATCH) {
    const ids = all.slice(start, start + RECORDS_PER_BATCH)
    const currentRecords = await readCurrentRecords(db, table, ids, { hasFiles: false })
    const deleted = ids.filter((id) => !currentRecords.has(id))
    const firstChanges = await readOutermostChanges(db, table, deleted, 'first')
    const lastChanges = await readOutermostChanges(db, table, ids, { lastUpTo: seq })
    for (const id of ids) {
      const current = currentRecords.get(id)
      const changes = changesById.get(id) ?? []
      const rewind = new Rewind(table, findCreation(current, firstChanges.get(id)), current, changes[0])
      for (const change of changes) rewind.undo(change)
      const before = rewind.copyState(lastChanges.get(id))
      characters += estimateCharacters(before)
      if (characters > MAX_CHARACTERS) throw createTooManyChangesError(model.name)
      changed.set(id, { before, version: rewind.version, today: current?.values ?? 'gone' })
    }
  }
  return changed
}

/** The Changes of each record, newest first. */
async function readChangesAfter(
  db: Queryable,
  model: string,
  seq: number,
): Promise<Map<number, LoggedChange[]>> {
  const [size] = await db.all(
    `select count(*) as "count", coalesce(sum(octet_length(changes)), 0) as "characters" from ${LOG_TABLE} where model = ? and seq > ?`,
    [model, seq],
  )
  if (Number(size?.['count']) > MAX_CHANGES || Number(size?.['characters']) > MAX_CHARACTERS)
    throw createTooManyChangesError(model)
  const changesById = new Map<number, LoggedChange[]>()
  for await (const page of readChangesBackwards(db, LOGGED_CHANGES, { model, after: seq }))
    for (const change of page) {
      const known = changesById.get(change.id)
      if (known) known.push(change)
      else changesById.set(change.id, [change])
    }
  return changesById
}

function createTooManyChangesError(model: string): VersoError {
  const most = `asOf can undo at most ${MAX_CHANGES} Changes, of records that are not too large`
  return new VersoError(
    'bad-request',
    `Too many Changes of ${model} since that time: ${most}. Request a later time`,
  )
}

function estimateCharacters(state: RecordState): number {
  if (typeof state === 'string') return 0
  const countCharacters = (value: Value) =>
    typeof value === 'string' ? value.length : typeof value === 'object' ? JSON.stringify(value).length : 8
  return Object.values(state).reduce<number>((sum, value) => sum + countCharacters(value), 0)
}

/** Returns the table with the earlier values of the changed records, and without those that did not exist. */
export function buildTableAt(table: Table, changed: ReadonlyMap<number, ChangedRecord>): Table {
  const { dialect, name } = table
  const fields = table.storedFields.filter(isSearchable)
  const columns = buildValueColumns(fields)
  const rows = [...changed].flatMap(([id, { before, version }]) =>
    typeof before === 'string' ? [] : [encodeCandidateRow(dialect, fields, { id, version, values: before })],
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

/** No search selects files or secrets. */
function isSearchable(field: Field): boolean {
  return getStorage(field) !== 'file' && field.secret === undefined
}
