// Writes lists of rows with one array parameter for each column.
import type { JsonColumn } from '../engine/columns.js'
import type {
  BulkInsert,
  BulkInsertTarget,
  RowListTable,
  RowListWriter,
  SqlRows,
  Transaction,
  UpdatedColumns,
} from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import { ChunkedInsert } from '../sql/bulk-insert.js'
import { toColumnArrays, unnestColumns } from './columns.js'

/** The values of a statement are sent as one message, so their number is limited. */
const MAX_ROWS_PER_STATEMENT = 1_000

export const LOCK_FOR_UPDATE = ' for no key update'
export const LOCK_FOR_REMOVAL = ' for update'

const GUARD_COLUMNS = [
  { name: '$id', storage: 'integer' },
  { name: '$version', storage: 'integer' },
] as const satisfies JsonColumn[]
const GUARD = 't."id" = "new"."$id" and t."version" = "new"."$version"'

export class PostgresRowListWriter implements RowListWriter {
  readonly #table: string
  readonly #insertSql: string

  constructor(private readonly table: RowListTable) {
    this.#table = quoteIdentifier(table.name)
    this.#insertSql = compileListInsert(table)
  }

  async insert(tx: Transaction, rows: SqlRows): Promise<(number | undefined)[]> {
    const ids: (number | undefined)[] = []
    for (const slice of sliceRows(rows)) {
      const inserted = await tx.all(this.#insertSql, toColumnArrays(this.table.columns.length, slice))
      const byRow = new Map(inserted.map((row) => [Number(row['row']), Number(row['id'])]))
      for (let row = 1; row <= slice.length; row++) ids.push(byRow.get(row))
    }
    return ids
  }

  async update(
    tx: Transaction,
    { columns }: UpdatedColumns,
    rows: SqlRows,
    skipsLocked = false,
  ): Promise<boolean[]> {
    const sets = columns
      .map(({ name }) => `${quoteIdentifier(name)} = "new".${quoteIdentifier(name)}, `)
      .join('')
    const guarded = [...GUARD_COLUMNS, ...columns]
    const set = `set ${sets}"version" = t."version" + 1`
    const sql = skipsLocked
      ? `${this.#lockRows(guarded, `${LOCK_FOR_UPDATE} skip locked`)} update ${this.#table} as t ${set} from "new" ` +
        `where ${GUARD} and t."id" in (select "id" from "held") returning t."id" as "id"`
      : // The caller has locked the rows in the order of their ids.
        `update ${this.#table} as t ${set} from (${unnestColumns(guarded)}) as "new" ` +
        `where ${GUARD} returning t."id" as "id"`
    return this.#runGuarded(tx, sql, guarded.length, rows)
  }

  async delete(tx: Transaction, rows: SqlRows): Promise<boolean[]> {
    const sql =
      `${this.#lockRows(GUARD_COLUMNS, LOCK_FOR_REMOVAL)} delete from ${this.#table} as t using "new" ` +
      `where ${GUARD} and t."id" in (select "id" from "held") returning t."id" as "id"`
    return this.#runGuarded(tx, sql, GUARD_COLUMNS.length, rows)
  }

  /** Locks the rows in the order of their ids, so that two lists cannot deadlock. */
  #lockRows(columns: readonly JsonColumn[], lock: string): string {
    return (
      `with "new" as materialized (${unnestColumns(columns)}), "held" as materialized (` +
      `select t."id" from ${this.#table} as t where t."id" in (select "$id" from "new") order by t."id"${lock})`
    )
  }

  async #runGuarded(tx: Transaction, sql: string, width: number, rows: SqlRows): Promise<boolean[]> {
    const results: boolean[] = []
    for (const slice of sliceRows(rows)) {
      const written = await tx.all(sql, toColumnArrays(width, slice))
      const ids = new Set(written.map((row) => row['id']))
      for (const [id = null] of slice) results.push(ids.has(id))
    }
    return results
  }
}

/** The result contains the row number, because the order of the returned rows is not guaranteed. */
function compileListInsert({ name, columns }: RowListTable): string {
  const names = columns.map((column) => quoteIdentifier(column.name)).join(', ')
  const nextId = `nextval((select pg_get_serial_sequence('"${name}"', 'id'))::regclass)`
  return (
    `with "new" as materialized (select ${nextId} as "id", "rows".* from (${unnestColumns(columns)}) as "rows"), ` +
    `"stored" as (insert into ${quoteIdentifier(name)} ("id", "version", ${names}) select "id", 0, ${names} from "new" ` +
    `on conflict do nothing returning "id") ` +
    `select "id", "$row" as "row" from "new" where "id" in (select "id" from "stored")`
  )
}

export function createArrayInsert({ table, columns, log }: BulkInsertTarget): BulkInsert {
  const names = columns.map(({ name }) => quoteIdentifier(name))
  const into = `insert into ${table} (${names.join(', ')})`
  const rows = `(${unnestColumns(columns)}) as "rows"`
  const timeColumn = log && quoteIdentifier(log.timeColumn)
  const logged = names.map((name) => (log && name === timeColumn ? log.lock.raiseTime(name) : name))
  // The Log numbers its rows, so the order must be that of the input.
  const sql = log
    ? `${log.lock.with}${into} select ${logged.join(', ')}${log.lock.from}, ${rows} order by "$row"`
    : `${into} select ${names.join(', ')} from ${rows}`
  return new ChunkedInsert(
    (maxRows) => [Math.min(maxRows, MAX_ROWS_PER_STATEMENT), sql],
    (rows) => toColumnArrays(columns.length, rows),
  )
}

function sliceRows(rows: SqlRows): SqlRows[] {
  const slices: SqlRows[] = []
  for (let start = 0; start < rows.length; start += MAX_ROWS_PER_STATEMENT)
    slices.push(rows.slice(start, start + MAX_ROWS_PER_STATEMENT))
  return slices
}
