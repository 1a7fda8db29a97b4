import { computeValues } from '../model/values.js'
import type { Values } from '../model/value.js'
import type { Transaction } from './database.js'
import { find, read } from './records.js'
import { encode, quote, type Table } from './table.js'

const RECORDS_AT_ONCE = 500

/** Works out the computed fields of every record again, page by page. */
export async function fillComputed(tx: Transaction, table: Table): Promise<void> {
  const computed = table.stored.filter((field) => field.computed)
  const sets = computed.map((field) => `${quote(field.name)} = ?`).join(', ')
  for (let offset = 0; ; offset += RECORDS_AT_ONCE) {
    const page = await find(tx, table, { offset, limit: RECORDS_AT_ONCE, sort: [], archived: true })
    for (const { id } of page.records) {
      const record = await read(tx, table, id)
      const values = computeValues(table.model, record as unknown as Values)
      const params = computed.map((field) => encode(table.dialect, field, values[field.name] ?? null))
      await tx.run(`update ${table.name} set ${sets} where "id" = ?`, [...params, id])
    }
    if (page.records.length < RECORDS_AT_ONCE) return
  }
}
