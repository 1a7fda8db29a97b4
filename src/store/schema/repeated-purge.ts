// Repeats a purge in a restored database, which has the values again. Works without models: it needs the stored snapshot of the table only.
import type { Value } from '../../model/values/value.js'
import type { Database, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { findFilesById, removeFile } from '../records/files.js'
import type { SchemaSnapshot } from './snapshot.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { LOGGED_CHANGES, readChangesBackwards } from '../log/change-pages.js'
import type { LoggedChange } from '../log/log.js'
import type { Purge } from '../log/purges.js'
import { purgeChangeValues, replaceChangeValues } from '../log/retention.js'

/** The service maintains these fields; the purge command keeps them, too. */
const KEPT_COLUMNS = new Set(['createdOn', 'createdBy', 'updatedOn', 'updatedBy', 'archived'])

export interface RestoredModel {
  /** Undefined if the database has no table of the model. */
  readonly snapshot: SchemaSnapshot | undefined
  /** The last sequence number of the backup. */
  readonly lastSeq: number
  /** The Log may have other names for the fields of the Changes up to this sequence number. */
  readonly formerSeq: number
}

/**
 * Removes all values up to the purge. The current values of a live record stay, except the values that were replaced between the backup and
 * the purge: the purge removed them as past values. A record that was deleted before its purge keeps no values of its own.
 * Returns the number of fields of the live record that are empty now.
 */
export async function repeatPurge(
  { dialect, blobs }: Pick<Database, 'dialect' | 'blobs'>,
  tx: Transaction,
  purge: Purge,
  model: RestoredModel,
): Promise<number> {
  const { newest, values } = await readNewestValues(tx, purge, model)
  if (!newest) return 0
  if (newest.seq > purge.seq) {
    await tx.run(
      `update ${LOG_TABLE} set changes = '{}', purged = 1 where model = ? and record = ? and seq <= ? and changes <> '{}'`,
      [purge.model, purge.id, purge.seq],
    )
    return 0
  }
  await purgeChangeValues(tx, purge.model, purge.id, newest.version)
  const isThere = newest.action !== 'delete'
  const columns = isThere ? listPurgedColumns(purge, model) : []
  for (const name of columns) values.set(name, null)
  const changes = [...values].map(([name, after]) => [name, { before: null, after }] as const)
  await replaceChangeValues(tx, {
    model: purge.model,
    id: purge.id,
    version: newest.version,
    changes: Object.fromEntries(isThere ? changes : []),
  })
  if (columns.length === 0) return 0
  await removeFiles({ dialect, blobs }, tx, purge, fileColumns(columns, model))
  const assignments = columns.map((name) => `${quoteIdentifier(name)} = null`).join(', ')
  const table = quoteIdentifier(toTableName(purge.model))
  return (await tx.run(`update ${table} set ${assignments} where "id" = ?`, [purge.id])) * columns.length
}

/** The newest Change of the record, and the values of the record as far as the Log has them. */
async function readNewestValues(
  tx: Transaction,
  { model, id }: Purge,
  { formerSeq }: RestoredModel,
): Promise<{ newest: LoggedChange | undefined; values: Map<string, Value> }> {
  let newest: LoggedChange | undefined
  const values = new Map<string, Value>()
  for await (const page of readChangesBackwards(tx, LOGGED_CHANGES, { model, id, after: -1 }))
    for (const change of page) {
      newest ??= change
      if (change.action === 'delete') return { newest, values }
      if (change.seq <= formerSeq) continue
      for (const [name, { after }] of Object.entries(change.changes))
        if (!values.has(name)) values.set(name, after)
    }
  return { newest, values }
}

/** References and counted fields stay: they name other records or few choices, and totals depend on them. */
function listPurgedColumns(
  { isDeleted, fields }: Purge,
  { snapshot, lastSeq }: RestoredModel,
): readonly string[] {
  const counted = new Set(snapshot?.counted ?? [])
  return Object.entries(snapshot?.columns ?? {})
    .filter(
      ([name, { target }]) => target === undefined && !counted.has(`=${name}`) && !KEPT_COLUMNS.has(name),
    )
    .map(([name]) => name)
    .filter((name) => isDeleted || (fields[name] ?? 0) > lastSeq)
}

function fileColumns(columns: readonly string[], { snapshot }: RestoredModel): readonly string[] {
  return columns.filter((name) => snapshot?.columns[name]?.storage === 'file')
}

async function removeFiles(
  { dialect, blobs }: Pick<Database, 'dialect' | 'blobs'>,
  tx: Transaction,
  { model, id }: Purge,
  columns: readonly string[],
): Promise<void> {
  if (columns.length === 0) return
  const names = columns.map(quoteIdentifier).join(', ')
  const [row] = await tx.all(`select ${names} from ${quoteIdentifier(toTableName(model))} where "id" = ?`, [
    id,
  ])
  const ids = Object.values(row ?? {}).flatMap((file) => (file === null ? [] : [Number(file)]))
  for (const file of (await findFilesById(tx, dialect, ids)).values()) await removeFile(tx, blobs, file)
}
