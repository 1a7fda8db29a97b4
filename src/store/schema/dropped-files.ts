// Files of columns and tables that are dropped: nobody would know of them any more.
import type { Contents, Transaction } from '../engine/database.js'
import { filesIn, removeFile } from '../records/files.js'
import { quote, tableName } from '../engine/names.js'
import type { Step } from './plan.js'
import type { ColumnShape, Shape } from './snapshot.js'

/** The columns that hold files, by model. */
export function fileColumns(shapes: ReadonlyMap<string, Shape>): Map<string, Set<string>> {
  const isFile = ([, { storage }]: readonly [string, ColumnShape]) => storage === 'file'
  return new Map(
    [...shapes].map(([model, { columns }]) => [
      model,
      new Set(
        Object.entries(columns)
          .filter(isFile)
          .map(([name]) => name),
      ),
    ]),
  )
}

/** To be called before each step. */
export async function dropFiles(
  tx: Transaction,
  contents: Contents,
  columns: ReadonlyMap<string, Set<string>>,
  step: Step,
): Promise<void> {
  const there = columns.get(step.model) ?? new Set()
  if (step.kind === 'rename-column' && there.delete(step.from)) there.add(step.to)
  if (step.kind !== 'drop-column' && step.kind !== 'drop-table') return
  for (const column of there) {
    if (step.kind === 'drop-column' && step.name !== column) continue
    for (const file of await filesIn(tx, quote(tableName(step.model)), column))
      await removeFile(tx, contents, file)
    there.delete(column)
  }
}
