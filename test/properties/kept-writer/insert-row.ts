// Inserts the row of a new record, or of a deleted one that a revert creates again.
import type { Model } from '../../../src/model/definition/model.js'
import type { Values } from '../../../src/model/values/value.js'
import type { Transaction } from '../../../src/store/engine/database.js'
import { insertWithIds } from '../../../src/store/records/bulk.js'
import { insertRows } from '../../../src/store/records/write.js'
import { takeNextNumber } from '../../../src/store/records/sequences.js'
import type { Table } from '../../../src/store/sql/table.js'

/** A deleted record that a revert creates again, with its old id and the next version. */
export interface RestoredRecord {
  readonly id: number
  readonly version: number
  /** The fields `createdOn` and `createdBy`. */
  readonly creation: Values
  /** The values of its sequence fields. */
  readonly numbers: Values
}

export async function insertRow(
  tx: Transaction,
  table: Table,
  values: Values,
  restored?: RestoredRecord,
): Promise<number> {
  if (restored) await insertWithIds(tx, table, [{ id: restored.id, version: restored.version, values }])
  return restored ? restored.id : ((await insertRows(tx, table, [values]))[0] ?? 0)
}

/** Takes the next number of each sequence field, unless the restored record has one. */
export async function assignNumbers(tx: Transaction, model: Model, restored: Values = {}): Promise<Values> {
  const numbers: Values = {}
  for (const field of model.fields.values()) {
    if (field.sequence) numbers[field.name] = restored[field.name] ?? (await takeNextNumber(tx, model, field))
  }
  return numbers
}
