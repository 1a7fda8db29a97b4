// Inserts Changes into the Log.
import { flattenRows, SizedStatements } from './bulk-insert.js'
import type { BulkInsert, Dialect, JsonColumn, SendStatement, SqlRows } from '../engine/database.js'

export const LOG_TABLE = 'verso_log'
/** Inserts of up to this many rows use a statement with one select per row. */
const MAX_UNROLLED_ROWS = 16

const LOG_COLUMNS: readonly JsonColumn[] = [
  { name: 'model', storage: 'text' },
  { name: 'record', storage: 'integer' },
  { name: 'version', storage: 'integer' },
  { name: 'action', storage: 'text' },
  { name: 'by_user', storage: 'integer' },
  { name: 'at_ms', storage: 'integer' },
  { name: 'changes', storage: 'text' },
]

export class LogInsert {
  /** For up to MAX_UNROLLED_ROWS rows. */
  readonly #unrolled: SizedStatements
  readonly #bulk: BulkInsert

  constructor(dialect: Dialect) {
    this.#unrolled = new SizedStatements(
      Array.from({ length: MAX_UNROLLED_ROWS }, (_, index) => MAX_UNROLLED_ROWS - index),
      (rowCount) => compileUnrolledInsert(dialect, rowCount),
    )
    this.#bulk = dialect.createBulkInsert({ table: LOG_TABLE, columns: LOG_COLUMNS, lock: dialect.lockLog })
  }

  /** Sends the rows with as few statements as possible. The values of each row are in the order of the columns. */
  async send(rows: SqlRows, send: SendStatement): Promise<void> {
    if (rows.length === 0 || rows.length > MAX_UNROLLED_ROWS) await this.#bulk.send(rows, send)
    else await send(this.#unrolled.select(rows.length)[1], flattenRows(rows), true)
  }
}

/** An insert with one select per row, which is faster than a JSON array for a few rows. */
function compileUnrolledInsert({ columns, lockLog }: Dialect, rowCount: number): string {
  const values = LOG_COLUMNS.map(({ storage }) =>
    storage === 'text' ? 'cast(? as text)' : `cast(? as ${columns[storage].type})`,
  )
  const row = `select ${values.join(', ')}${lockLog.from}`
  return (
    `${lockLog.with}insert into ${LOG_TABLE} (${LOG_COLUMNS.map(({ name }) => name).join(', ')}) ` +
    Array.from({ length: rowCount }, () => row).join(' union all ')
  )
}
