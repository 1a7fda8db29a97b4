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
