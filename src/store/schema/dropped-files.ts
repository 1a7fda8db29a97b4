// Removes the files of dropped columns and tables, which no record would refer to any more.
import type { BlobStore, Transaction } from '../engine/database.js'
import { findFilesInColumn, removeFile } from '../records/files.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import type { SchemaStep } from './plan.js'
import type { ColumnSnapshot, SchemaSnapshot } from './snapshot.js'

/** Finds the columns that contain files, by model. */
export function findFileColumns(snapshots: ReadonlyMap<string, SchemaSnapshot>): Map<string, Set<string>> {
  const isFile = ([, { storage }]: readonly [string, ColumnSnapshot]) => storage === 'file'
  return new Map(
    [...snapshots].map(([model, { columns }]) => [
      model,
      new Set(
        Object.entries(columns)
          .filter(isFile)
          .map(([name]) => name),
      ),
    ]),
  )
}

/** Removes the files that a step is about to drop. Must be called before each step. */
export async function removeDroppedFiles(
  tx: Transaction,
  blobs: BlobStore,
  columns: ReadonlyMap<string, Set<string>>,
  step: SchemaStep,
): Promise<void> {
  const fileColumns = columns.get(step.model) ?? new Set()
  if (step.kind === 'rename-column' && fileColumns.delete(step.from)) fileColumns.add(step.to)
  if (step.kind !== 'drop-column' && step.kind !== 'drop-table') return
  for (const column of fileColumns) {
    if (step.kind === 'drop-column' && step.name !== column) continue
    for (const file of await findFilesInColumn(tx, quoteIdentifier(toTableName(step.model)), column))
      await removeFile(tx, blobs, file)
    fileColumns.delete(column)
  }
}
