// Rows of one table, in as few statements as the engine likes best, with texts that are made once.
import type { Dialect, JsonColumn, SqlValue, Transaction } from '../engine/database.js'
import { toColumnLists } from './many-rows.js'
import { quoteIdentifier } from '../engine/names.js'

/** Rows in one statement where each value has its own mark. Few sizes, so that few statements are prepared. */
const ROWS_PER_STATEMENT = [64, 16, 4, 1] as const
/** Longer statements would not be kept, and take longer to prepare than to run. */
const MAX_PLACEHOLDERS = 3_000
/** Rows in one statement where each column is a list. */
const MAX_LISTED_ROWS = 1_000

type InsertRows = readonly (readonly SqlValue[])[]
type SendStatement = (sql: string, params: readonly SqlValue[], isLast: boolean) => unknown

export class BulkInsert {
  readonly #listStatement: string | undefined
  readonly #valueStatements: readonly (readonly [many: number, sql: string])[]

  constructor(
    private readonly dialect: Dialect,
    /** Quoted. */
    table: string,
    private readonly columns: readonly JsonColumn[],
    /** Taken before the first row is there. */
    lock: Dialect['lockLog'] = { with: '', from: '' },
  ) {
    const names = columns.map(({ name }) => quoteIdentifier(name)).join(', ')
    const into = `${lock.with}insert into ${table} (${names})`
    // What is locked for has an order, too: that of the rows.
    const locked = lock.from === '' ? '' : ` where exists (select 1${lock.from}) order by "$row"`
    this.#listStatement =
      dialect.batch && `${into} select ${names} from (${dialect.batch.unnest(columns)}) as "rows"${locked}`
    const marks = `(${columns.map(() => '?').join()})`
    this.#valueStatements = ROWS_PER_STATEMENT.filter(
      (many) => many === 1 || many * columns.length <= MAX_PLACEHOLDERS,
    ).map((many) => [many, `${into} values ${Array.from({ length: many }, () => marks).join()}`])
  }

  async run(tx: Transaction, rows: InsertRows): Promise<void> {
    await this.send(rows, (sql, params) => tx.run(sql, params))
  }

  /** Each statement in its order, waited for. */
  async send(rows: InsertRows, send: SendStatement): Promise<void> {
    const { batch } = this.dialect
    for (let start = 0; start < rows.length;) {
      const left = rows.length - start
      const [size, sql] =
        this.#listStatement === undefined
          ? (this.#valueStatements.find(([each]) => each <= left) ?? [1, ''])
          : [Math.min(left, MAX_LISTED_ROWS), this.#listStatement]
      const some = rows.slice(start, start + size)
      start += size
      const params = batch ? toColumnLists(batch, this.columns.length, some) : flattenRows(some)
      await send(sql, params, start >= rows.length)
    }
  }
}

/** As `flat` does, many times quicker. */
function flattenRows(rows: InsertRows): SqlValue[] {
  const values: SqlValue[] = []
  for (const row of rows) for (const value of row) values.push(value)
  return values
}
