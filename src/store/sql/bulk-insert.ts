// Inserts many rows into one table with few statements, whose texts are compiled once.
import type { BulkInsert, SendStatement, SqlRows, SqlValue, Transaction } from '../engine/database.js'

/** Longer statements are not cached and take longer to prepare than to run. */
const MAX_PLACEHOLDERS = 3_000

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

/** Sends rows in chunks of the sizes that the statements of the engine have. */
export class ChunkedInsert implements BulkInsert {
  constructor(
    /** Returns a number of rows that is at most `maxRows`, and its statement. */
    private readonly selectStatement: (maxRows: number) => readonly [rowCount: number, sql: string],
    private readonly toParams: (rows: SqlRows) => readonly SqlValue[],
  ) {}

  async run(tx: Transaction, rows: SqlRows): Promise<void> {
    await this.send(rows, (sql, params) => tx.run(sql, params))
  }

  async send(rows: SqlRows, send: SendStatement): Promise<void> {
    for (let start = 0; start < rows.length;) {
      const [size, sql] = this.selectStatement(rows.length - start)
      const params = this.toParams(rows.slice(start, start + size))
      start += size
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
