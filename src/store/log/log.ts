// The Log: every committed change of every record, in commit order. The transaction that changes a record also appends the Change.
import { USER_SYSTEM_MODEL } from '../../model/catalog/system-models.js'
import type { Action, Change } from '../../wire.js'
import { parseStoredJson, createUnwritableError } from '../engine/write-health.js'
import { updateCounters, type CountedChange } from '../counters/counters.js'
import type { Dialect, Queryable, Row, SqlValue, Transaction } from '../engine/database.js'
import { flattenRows } from '../sql/bulk-insert.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import type { Tables } from '../sql/table.js'

export interface NewChange extends CountedChange {
  /** The version that the Change produced. A delete increments the version, too. */
  readonly version: number
  /** The user who made the Change; null if no user did. */
  readonly userId: number | null
  readonly atMs: number
}

/** Appends Changes as the last step of a transaction. From here to the end of the transaction, no other writer gets a sequence number. */
export async function appendChanges(
  tx: Transaction,
  tables: Tables,
  changes: readonly NewChange[],
): Promise<void> {
  // A group commit appends the Changes of all its writers in one statement.
  await tx.beforeCommit('log', changes, (end, all) => insertChanges(end, tables, all))
}

/** `lists` are the Changes of each writer. */
async function insertChanges(
  tx: Transaction,
  tables: Tables,
  lists: readonly (readonly NewChange[])[],
): Promise<void> {
  const [first = []] = lists
  const changes = lists.length === 1 ? first : lists.flat()
  const rows = raiseTimes(changes).map(toLogRow)
  const { unrolled, bulk } = tables.logInsert
  const sql = unrolled[rows.length]
  const [only = []] = rows
  // All writers wait for the lock of the Log, so the last statement is sent together with the COMMIT, which saves a round trip.
  if (sql !== undefined) await tx.sendWithCommit(sql, rows.length === 1 ? only : flattenRows(rows))
  else
    await bulk.send(rows, (each, params, isLast) =>
      isLast ? tx.sendWithCommit(each, params) : tx.run(each, params),
    )
  const counted = changes.filter((change) => mayChangeCounters(tables, change))
  if (counted.length > 0) await updateCounters(tx, tables, counted)
}

/** The writers of a group began in another order than that of their Changes. The times of the Log never go back. */
function raiseTimes(changes: readonly NewChange[]): readonly NewChange[] {
  let latestMs = -Infinity
  return changes.map((change) => {
    latestMs = Math.max(latestMs, change.atMs)
    return change.atMs === latestMs ? change : { ...change, atMs: latestMs }
  })
}

/** The values of the columns of the Log. */
function toLogRow({ model, id, version, action, userId, atMs, changes }: NewChange): SqlValue[] {
  return [model, id, version, action, userId, atMs, JSON.stringify(changes)]
}

/** False for an update of fields that no counter depends on. */
function mayChangeCounters({ catalog }: Tables, { model, action, changes }: NewChange): boolean {
  if (action !== 'update') return true
  const fields = catalog.find(model)?.counterFields
  return fields !== undefined && Object.keys(changes).some((name) => fields.has(name))
}

export const CHANGE_COLUMNS = `l.seq, l.model, l.record, l.version, l.action, l.by_user, l.at_ms, l.changes, l.purged, u."version" as user_version, u."name" as user_name`
/** Joins the user who made each Change `l`. */
export const JOIN_USER = `left join ${quoteIdentifier(toTableName(USER_SYSTEM_MODEL.name))} as u on u."id" = l.by_user`
/** The columns of a Change without its values. */
export const CHANGE_HEADER_COLUMNS = CHANGE_COLUMNS.replace('l.changes', `'{}' as changes`)
/** The columns of a `LoggedChange`. */
export const LOGGED_CHANGE_COLUMNS = 'l.seq, l.record, l.version, l.action, l.changes, l.purged'
export const FROM_LOG = `from ${LOG_TABLE} as l ${JOIN_USER}`

/** A page of Changes that the service itself reads has about this many bytes, or one larger Change. */
export const LOG_PAGE_BYTES = 8_000_000

/**
 * Limits a page of Changes by its size. `page` selects the `seq` and "size" of each Change; the result has the total "size" of the Changes
 * before each one as "before". A condition on "before" then always includes the first Change.
 */
export function sumPrecedingSizes(page: string, order: string): string {
  return `select seq, sum("size") over (order by ${order}) - "size" as "before" from (${page}) as "some"`
}

/** Finds the greatest version of each record in the Log, including deleted records. */
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

/** Finds the updates of records that have no user. An import logs members that it adds to lists this way. */
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

/** Finds the greatest record id of a model in the Log; 0 if there is none. */
export async function findLastLoggedId(db: Queryable, model: string): Promise<number> {
  const [row] = await db.all(`select max(record) as "last" from ${LOG_TABLE} where model = ?`, [model])
  return Number(row?.['last'] ?? 0)
}

/** A Change without its model, user and time: what is needed to undo it. It takes half of the time to read. */
export type LoggedChange = Omit<Change, 'model' | 'on' | 'by'>

export function toChange(row: Row): Change {
  const { seq, id, version, action, changes, purged } = toLoggedChange(row)
  return {
    seq,
    model: String(row['model']),
    id,
    version,
    action,
    on: toTimestamp(row),
    by: toAuthor(row),
    changes,
    ...(purged ? { purged } : {}),
  }
}

export function toLoggedChange(row: Row): LoggedChange {
  return {
    seq: Number(row['seq']),
    id: Number(row['record']),
    version: Number(row['version']),
    action: row['action'] as Action,
    changes: parseStoredJson(row['changes']) as Change['changes'],
    ...(row['purged'] === 1 ? { purged: true } : {}),
  }
}

function toAuthor(row: Row): Change['by'] {
  const version = row['user_version'] ?? null
  if (version === null) return null
  return { id: Number(row['by_user']), $version: Number(version), name: row['user_name'] as string | null }
}

function toTimestamp(row: Row): string {
  const date = new Date(Number(row['at_ms']))
  // No clock produces this number.
  if (Number.isNaN(date.getTime())) throw createUnwritableError('damaged')
  return date.toISOString()
}
