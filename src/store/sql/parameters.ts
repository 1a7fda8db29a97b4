import type { SqlValue } from '../engine/database.js'

export interface SqlFragment {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

/** How many rows at most, by a parameter. SQLite makes a plan for each value of a bare mark, which takes as long as a page. */
export function compileLimit(placeholder = '?'): string {
  return `limit cast(${placeholder} as bigint)`
}

/** The parameters of a statement whose text is not made from left to right: each has a mark of its own until the text is whole. */
export class SqlParameters {
  readonly #values: SqlValue[] = []

  bind(value: SqlValue): string {
    return `?{${this.#values.push(value) - 1}}`
  }

  /** A part of the text that stays together, with plain marks and the parameters in their order. */
  render(text: string): SqlFragment {
    const params: SqlValue[] = []
    const sql = text.replace(/\?\{(\d+)\}/g, (_, index: string) => {
      params.push(this.#values[Number(index)] ?? null)
      return '?'
    })
    return { sql, params }
  }
}
