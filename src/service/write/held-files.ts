// Releases the files that a write replaces, and describes them for the Log.
import { pickFileMetadata } from '../../model/catalog/file-metadata.js'
import { isObject, isSameValue, type Value, type Values } from '../../model/values/value.js'
import type { Queryable, Transaction } from '../../store/engine/database.js'
import { findRecordFiles, removeFile, type StoredFile } from '../../store/records/files.js'
import type { Table } from '../../store/sql/table.js'
import type { Change } from '../../wire.js'
import type { WriteContext } from '../context/context.js'

export type StoredFiles = ReadonlyMap<string, StoredFile>

/**
 * Finds the files that these values replace; all files if the record is deleted. Call it between the read of the record and its guarded
 * write: if that write succeeds, the version has not changed and these were its files.
 */
export async function findReplacedFiles(
  tx: Transaction,
  table: Table,
  id: number,
  values?: Values,
): Promise<StoredFiles> {
  const isReplaced = (name: string) => !values || Object.hasOwn(values, name)
  if (!table.fileFields.some(({ name }) => isReplaced(name))) return new Map()
  const files = await findRecordFiles(tx, table, id)
  return new Map([...(files ?? [])].filter(([name]) => isReplaced(name)))
}

export async function releaseFiles({ app, tx }: WriteContext, files: Iterable<StoredFile>): Promise<void> {
  for (const file of files) await removeFile(tx, app.db.blobs, file)
}

/** Describes added and removed files for the Log. */
export function diffFiles({ fileFields }: Table, before: StoredFiles, after: Values = {}): Change['changes'] {
  const changes: Record<string, { before: Value; after: Value }> = {}
  for (const { name } of fileFields) {
    const old = before.get(name)
    const change = { before: old ? pickFileMetadata(old) : null, after: toLoggedFile(after[name]) }
    if (!isSameValue(change.before, change.after)) changes[name] = change
  }
  return changes
}

/** Describes the files of a record for the Log; null for an empty field. */
export async function readFileValues(db: Queryable, table: Table, id: number): Promise<Values> {
  const files = table.fileFields.length === 0 ? undefined : await findRecordFiles(db, table, id)
  const valueOf = (name: string) => {
    const file = files?.get(name)
    return file ? pickFileMetadata(file) : null
  }
  return Object.fromEntries(table.fileFields.map(({ name }) => [name, valueOf(name)]))
}

function toLoggedFile(value: Value | undefined): Value {
  return isObject(value) ? pickFileMetadata(value as unknown as StoredFile) : null
}
