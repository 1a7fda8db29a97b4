// Inserts many rows into one table with few statements, whose texts are compiled once.
import type { BatchSql, Dialect, JsonColumn, SqlRows, SqlValue, Transaction } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'

/** Rows of a statement with one placeholder for each value. */
const ROWS_PER_STATEMENT = [64, 16, 4, 1] as const
/** Longer statements are not cached and take longer to prepare than to run. */
const MAX_PLACEHOLDERS = 3_000
/** Rows of a statement with one array for each column. */
const MAX_LISTED_ROWS = 1_000

/** A statement for any number of rows, built once for a few sizes. Few sizes limit the number of prepared statements. */
export class SizedStatements {
  readonly #bySize: readonly (readonly [rowCount: number, sql: string])[]

  /** `sizes` are in descending order, and the last one is 1. */
  constructor(sizes: readonly number[], buildSql: (rowCount: number) => string) {
    this.#bySize = sizes.map((rowCount) => [rowCount, buildSql(rowCount)])
  }

  /** Returns the largest size that is at most `maxRows`, and its statement. */
  select(maxRows: number): readonly [rowCount: number, sql: string] {
    const selected = this.#bySize.find(([rowCount]) => rowCount <= maxRows)
    if (!selected) throw new Error('a statement needs at least one row')
    return selected
  }
}

/** Omits sizes whose statements would have too many placeholders. */
export function limitSizes(sizes: readonly number[], columnCount: number): number[] {
  return sizes.filter((rowCount) => rowCount === 1 || rowCount * columnCount <= MAX_PLACEHOLDERS)
}

export function repeatSql(count: number, part: string, separator: string): string {
  return Array.from({ length: count }, () => part).join(separator)
}

export type SendStatement = (sql: string, params: readonly SqlValue[], isLast: boolean) => unknown

export class BulkInsert {
  readonly #listStatement: string | undefined
  readonly #valueStatements: SizedStatements

  constructor(
    private readonly dialect: Dialect,
    /** Quoted. */
    table: string,
    private readonly columns: readonly JsonColumn[],
    /** Acquired before the first row is inserted. */
    lock: Dialect['lockLog'] = { with: '', from: '' },
  ) {
    const names = columns.map(({ name }) => quoteIdentifier(name)).join(', ')
    const into = `${lock.with}insert into ${table} (${names})`
    // Tables with a lock number their rows, so the order must be that of the input.
    const locked = lock.from === '' ? '' : ` where exists (select 1${lock.from}) order by "$row"`
    this.#listStatement =
      dialect.batch && `${into} select ${names} from (${dialect.batch.unnest(columns)}) as "rows"${locked}`
    const placeholders = `(${columns.map(() => '?').join()})`
    this.#valueStatements = new SizedStatements(
      limitSizes(ROWS_PER_STATEMENT, columns.length),
      (rowCount) => `${into} values ${repeatSql(rowCount, placeholders, ',')}`,
    )
  }

  async run(tx: Transaction, rows: SqlRows): Promise<void> {
    await this.send(rows, (sql, params) => tx.run(sql, params))
  }

  /** Sends the statements one after the other. */
  async send(rows: SqlRows, send: SendStatement): Promise<void> {
    const { batch } = this.dialect
    for (let start = 0; start < rows.length;) {
      const remaining = rows.length - start
      const [size, sql] =
        this.#listStatement === undefined
          ? this.#valueStatements.select(remaining)
          : [Math.min(remaining, MAX_LISTED_ROWS), this.#listStatement]
      const slice = rows.slice(start, start + size)
      start += size
      const params = batch ? toColumnLists(batch, this.columns.length, slice) : flattenRows(slice)
      await send(sql, params, start >= rows.length)
    }
  }
}

/** Many times faster than `flat`. */
export function flattenRows(rows: SqlRows): SqlValue[] {
  const values: SqlValue[] = []
  for (const row of rows) for (const value of row) values.push(value)
  return values
}

/** The parameters of `BatchSql.unnest`: an array for each column. */
export function toColumnLists(many: BatchSql, width: number, rows: SqlRows): string[] {
  return Array.from({ length: width }, (_, column) =>
    many.arrayLiteral(rows.map((row) => row[column] ?? null)),
  )
}
