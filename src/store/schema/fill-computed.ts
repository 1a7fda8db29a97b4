import { computeValues, toValues } from '../../model/definition/record-values.js'
import type { Transaction } from '../engine/database.js'
import { read } from '../records/records.js'
import { quoteIdentifier } from '../engine/names.js'
import { encodeValue } from '../sql/column.js'
import type { Table } from '../sql/table.js'

const COMPUTE_BATCH_RECORDS = 500

/** Computes the computed fields of every record. The versions of the records do not change. */
export async function fillComputedFields(tx: Transaction, table: Table): Promise<void> {
  const computed = table.storedFields.filter((field) => field.computed)
  const sets = computed.map((field) => `${quoteIdentifier(field.name)} = ?`).join(', ')
  for (let last = 0; ;) {
    const rows = await tx.all(`select "id" from ${table.name} where "id" > ? order by "id" limit ?`, [
      last,
      COMPUTE_BATCH_RECORDS,
    ])
    for (const row of rows) {
      last = Number(row['id'])
      const record = (await read(tx, table, last)) ?? {}
      const values = computeValues(table.model, toValues(table.model, record))
      const params = computed.map((field) => encodeValue(table.dialect, field, values[field.name] ?? null))
      await tx.run(`update ${table.name} set ${sets} where "id" = ?`, [...params, last])
    }
    if (rows.length < COMPUTE_BATCH_RECORDS) return
  }
}
