// The Log: every committed change of every record, in commit order, written in the transaction that made it.
import { isOwnedList } from '../../model/definition/model.js'
import { USER_SYSTEM_MODEL } from '../../model/catalog/system-models.js'
import type { Values } from '../../model/values/value.js'
import type { Action, Change } from '../../wire.js'
import { parseStoredJson, createUnwritableError } from '../engine/database-condition.js'
import { updateCounters, type CountedChange } from '../counters/counters.js'
import type { Dialect, JsonColumn, Queryable, Row, SqlValue, Transaction } from '../engine/database.js'
import { BulkInsert } from '../sql/bulk-insert.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import type { Table, Tables } from '../sql/table.js'

export interface NewChange extends CountedChange {
  /** The version it made; a delete takes the next number too. */
  readonly version: number
  readonly by: number | null
  readonly atMs: number
}

export const LOG_TABLE = 'verso_log'
/** Up to here each number of rows has a statement of its own. */
const MAX_UNROLLED_ROWS = 16
/** Whoever is further behind reads the record anew. */
const MAX_REWOUND_CHANGES = 10_000
/** They are looked at in pages; one alone may be as large as it is. */
const LOG_PAGE_ROWS = 1_000
export const LOG_PAGE_BYTES = 8_000_000

/** The last thing a transaction does: from here to its end no other writer gets a number. */
export async function appendChanges(
  tx: Transaction,
  tables: Tables,
  changes: readonly NewChange[],
): Promise<void> {
  // One statement for all works of the transaction, once the last of them is done.
  if (tx.beforeCommit) tx.beforeCommit('log', changes, (end, all) => appendChanges(end, tables, all.flat()))
  else await insertChanges(tx, tables, changes)
}

async function insertChanges(tx: Transaction, tables: Tables, changes: readonly NewChange[]): Promise<void> {
  const { few, many } = getLogInsertStatements(tables.dialect)
  const rows = changes.map(({ model, id, version, action, by, atMs, changes: made }) => {
    return [model, id, version, action, by, atMs, JSON.stringify(made)]
  })
  // While it waits for the COMMIT, everybody else waits for it.
  const send = (sql: string, params: readonly SqlValue[], isLast: boolean) =>
    isLast && tx.sendWithCommit ? tx.sendWithCommit(sql, params) : tx.run(sql, params)
  const sql = few[rows.length]
  if (sql === undefined) await many.send(rows, send)
  else await send(sql, rows.flat(), true)
  await updateCounters(tx, tables, changes)
}

const LOG_COLUMNS: readonly JsonColumn[] = [
  { name: 'model', storage: 'text' },
  { name: 'record', storage: 'integer' },
  { name: 'version', storage: 'integer' },
  { name: 'action', storage: 'text' },
  { name: 'by_user', storage: 'integer' },
  { name: 'at_ms', storage: 'integer' },
  { name: 'changes', storage: 'text' },
]

interface LogInsertStatements {
  /** The texts for so many rows, from 1 on. */
  readonly few: readonly (string | undefined)[]
  readonly many: BulkInsert
}

const LOG_INSERT_STATEMENTS = new WeakMap<Dialect, LogInsertStatements>()

function getLogInsertStatements(dialect: Dialect): LogInsertStatements {
  const cached = LOG_INSERT_STATEMENTS.get(dialect)
  if (cached) return cached
  const statements = {
    few: Array.from({ length: MAX_UNROLLED_ROWS + 1 }, (_, rows) =>
      rows > 0 ? buildUnrolledInsert(dialect, rows) : undefined,
    ),
    many: new BulkInsert(dialect, LOG_TABLE, LOG_COLUMNS, dialect.lockLog),
  }
  LOG_INSERT_STATEMENTS.set(dialect, statements)
  return statements
}

/** For few rows a select of each is quicker than lists are. */
function buildUnrolledInsert({ columns, lockLog }: Dialect, rows: number): string {
  const values = LOG_COLUMNS.map(({ storage }) =>
    storage === 'text' ? 'cast(? as text)' : `cast(? as ${columns[storage].type})`,
  )
  const row = `select ${values.join(', ')}${lockLog.from}`
  return (
    `${lockLog.with}insert into ${LOG_TABLE} (${LOG_COLUMNS.map(({ name }) => name).join(', ')}) ` +
    Array.from({ length: rows }, () => row).join(' union all ')
  )
}

export const CHANGE_COLUMNS = `l.seq, l.model, l.record, l.version, l.action, l.by_user, l.at_ms, l.changes, l.purged, u."version" as user_version, u."name" as user_name`
/** Who made each of the Changes `l`. */
export const JOIN_USER = `left join ${quoteIdentifier(toTableName(USER_SYSTEM_MODEL.name))} as u on u."id" = l.by_user`
/** Of Changes of which only matters who made them, and when. */
export const CHANGE_HEADER_COLUMNS = CHANGE_COLUMNS.replace('l.changes', `'{}' as changes`)
export const FROM_LOG = `from ${LOG_TABLE} as l ${JOIN_USER}`

/** The greatest version that the Log has of each of these records, also of those that are gone. */
export async function findLastVersions(
  db: Queryable,
  { json }: Dialect,
  model: string,
  ids: readonly number[],
): Promise<Map<number, number>> {
  const rows = await db.all(
    `select record, max(version) as "last" from ${LOG_TABLE} where model = ? and record in (${json.unnest('integer')}) group by record`,
    [model, JSON.stringify(ids)],
  )
  return new Map(rows.map((row) => [Number(row['record']), Number(row['last'])]))
}

export interface LoggedUpdate {
  readonly version: number
  readonly changes: Change['changes']
}

/** The updates of these records that no user made: an import adds members to lists in nobody's name. */
export async function findAnonymousUpdates(
  db: Queryable,
  { json }: Dialect,
  model: string,
  ids: readonly number[],
): Promise<Map<number, LoggedUpdate[]>> {
  const rows = await db.all(
    `select record, version, changes from ${LOG_TABLE} ` +
      `where model = ? and record in (${json.unnest('integer')}) and by_user is null and action = 'update'`,
    [model, JSON.stringify(ids)],
  )
  const updates = new Map<number, LoggedUpdate[]>()
  for (const row of rows) {
    const record = Number(row['record'])
    const changes = parseStoredJson(row['changes']) as Change['changes']
    updates.set(record, [...(updates.get(record) ?? []), { version: Number(row['version']), changes }])
  }
  return updates
}

/** The greatest id of this model that the Log knows; 0 if it knows none. */
export async function findLastLoggedId(db: Queryable, model: string): Promise<number> {
  const [row] = await db.all(`select max(record) as "last" from ${LOG_TABLE} where model = ?`, [model])
  return Number(row?.['last'] ?? 0)
}

/**
 * The record as it was at a version: what it is now, with every later change taken back. Undefined if one of those is no longer
 * in the Log, or if they are too many.
 */
export async function rewindValues(
  db: Queryable,
  { model, fieldNames }: Table,
  id: number,
  current: { readonly version: number; readonly values: Values },
  version: number,
): Promise<Values | undefined> {
  if (version > current.version || current.version - version > MAX_REWOUND_CHANGES) return undefined
  const values = { ...current.values }
  for (let reached = current.version; reached > version;) {
    const page = await readChangesBackwards(db, model.name, id, version, reached)
    if (page.length === 0) return undefined
    for (const { version: made, isPurged, ...logged } of page) {
      if (made !== reached-- || isPurged) return undefined
      const { changes, unknownFields, hasUnexplainedFields } = fieldNames.translate(logged)
      // Whose value something is, or what a field of today held then, nobody knows any more.
      if (hasUnexplainedFields || unknownFields.length > 0) return undefined
      for (const [name, { before }] of Object.entries(changes)) values[name] = before
    }
  }
  // Of a record that was gone in between, a list of nobody is not told.
  for (const field of model.fields.values()) if (isOwnedList(field)) values[field.name] ??= []
  return values
}

/** From the change that made `to` back to the one after `from`, or as many of them as are a page. */
async function readChangesBackwards(
  db: Queryable,
  model: string,
  id: number,
  from: number,
  to: number,
): Promise<(LoggedUpdate & { readonly seq: number; readonly isPurged: boolean })[]> {
  const rows = await db.all(
    `select seq, version, changes, purged from (select seq, version, changes, purged, sum(octet_length(changes)) over (order by version desc) as size ` +
      `from ${LOG_TABLE} where model = ? and record = ? and version > ? and version <= ? ` +
      `order by version desc limit ${LOG_PAGE_ROWS}) as page ` +
      `where size <= ${LOG_PAGE_BYTES} or version = ? order by version desc`,
    [model, id, from, to, to],
  )
  return rows.map((row) => ({
    seq: Number(row['seq']),
    version: Number(row['version']),
    changes: parseStoredJson(row['changes']) as Change['changes'],
    isPurged: row['purged'] === 1,
  }))
}

export function toChange(row: Row): Change {
  const version = row['user_version'] ?? null
  return {
    seq: Number(row['seq']),
    model: String(row['model']),
    id: Number(row['record']),
    version: Number(row['version']),
    action: row['action'] as Action,
    on: toTimestamp(row),
    by:
      version === null
        ? null
        : { id: Number(row['by_user']), $version: Number(version), name: row['user_name'] as string | null },
    changes: parseStoredJson(row['changes']) as Change['changes'],
    ...(row['purged'] === 1 ? { purged: true } : {}),
  }
}

function toTimestamp(row: Row): string {
  const date = new Date(Number(row['at_ms']))
  // No clock gives such a number.
  if (Number.isNaN(date.getTime())) throw createUnwritableError('damaged')
  return date.toISOString()
}
