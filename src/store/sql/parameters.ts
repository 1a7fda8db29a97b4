import type { SqlValue } from '../engine/database.js'

export interface SqlFragment {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

/** A limit from a parameter. Without the cast SQLite makes a new plan for each value, which takes as long as reading a page. */
export function compileLimit(placeholder = '?'): string {
  return `limit cast(${placeholder} as bigint)`
}

/** Collects parameters of a statement whose parts are not compiled in their final order. `bind` returns numbered placeholders. */
export class SqlParameters {
  readonly #values: SqlValue[] = []

  bind(value: SqlValue): string {
    return `?{${this.#values.push(value) - 1}}`
  }

  /** Replaces the numbered placeholders of a text by `?` and returns the parameters in their order. */
  render(text: string): SqlFragment {
    const params: SqlValue[] = []
    const sql = text.replace(/\?\{(\d+)\}/g, (_, index: string) => {
      params.push(this.#values[Number(index)] ?? null)
      return '?'
    })
    return { sql, params }
  }
}
