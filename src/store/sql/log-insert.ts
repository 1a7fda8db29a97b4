// Compiles the statements that insert Changes into the Log.
import type { JsonColumn } from '../engine/columns.js'
import type { BulkInsert, Dialect } from '../engine/database.js'

export const LOG_TABLE = 'verso_log'
/** Inserts of up to this many rows use a statement with one select per row. */
const MAX_UNROLLED_ROWS = 16

const TIME_COLUMN = 'at_ms'

const LOG_COLUMNS: readonly JsonColumn[] = [
  { name: 'model', storage: 'text' },
  { name: 'record', storage: 'integer' },
  { name: 'version', storage: 'integer' },
  { name: 'action', storage: 'text' },
  { name: 'by_user', storage: 'integer' },
  { name: TIME_COLUMN, storage: 'integer' },
  { name: 'changes', storage: 'text' },
]

/** The statements that insert Changes. The values of each row are in the order of the columns. */
export interface LogInsert {
  /** By the number of rows, from 1 up to MAX_UNROLLED_ROWS. */
  readonly unrolled: readonly (string | undefined)[]
  /** For any number of rows. */
  readonly bulk: BulkInsert
}

export function compileLogInsert(dialect: Dialect): LogInsert {
  const unrolled = Array.from({ length: MAX_UNROLLED_ROWS }, (_, index) =>
    compileUnrolledInsert(dialect, index + 1),
  )
  const bulk = dialect.createBulkInsert({
    table: LOG_TABLE,
    columns: LOG_COLUMNS,
    log: { lock: dialect.lockLog, timeColumn: TIME_COLUMN },
  })
  return { unrolled: [undefined, ...unrolled], bulk }
}

/** An insert with one select per row, which is faster than a JSON array for a few rows. */
function compileUnrolledInsert({ columns, lockLog }: Dialect, rowCount: number): string {
  const values = LOG_COLUMNS.map(({ name, storage }) => {
    const value = storage === 'text' ? 'cast(? as text)' : `cast(? as ${columns[storage].type})`
    return name === TIME_COLUMN ? lockLog.raiseTime(value) : value
  })
  const row = `select ${values.join(', ')}${lockLog.from}`
  return (
    `${lockLog.with}insert into ${LOG_TABLE} (${LOG_COLUMNS.map(({ name }) => name).join(', ')}) ` +
    Array.from({ length: rowCount }, () => row).join(' union all ')
  )
}
