// Writes lists of rows with one placeholder for each value. Writes return no rows here, so a list that is not written completely is undone
// and written row by row.
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
import { UniqueViolation } from '../engine/unique-violation.js'
import { ChunkedInsert, flattenRows, limitSizes, repeatSql, SizedStatements } from '../sql/bulk-insert.js'

const INSERT_SIZES = [64, 16, 4, 1] as const
/** A guarded statement for a list builds a temporary table, which takes as long as ten statements for one row. */
const GUARDED_SIZES = [64, 24, 1] as const
/** Clients choose the updated fields, so the number of cached statements is limited. */
const MAX_CACHED_UPDATES = 100
const SAVEPOINT = 'row_list'

export class SqliteRowListWriter implements RowListWriter {
  readonly #inserts: SizedStatements
  readonly #updates = new Map<string, SizedStatements>()
  #deletes: SizedStatements | undefined
  readonly #table: string

  constructor(table: RowListTable) {
    this.#table = quoteIdentifier(table.name)
    this.#inserts = compileInserts(this.#table, table.columns)
  }

  async insert(tx: Transaction, rows: SqlRows): Promise<(number | undefined)[]> {
    const ids: (number | undefined)[] = []
    for (let start = 0; start < rows.length;) {
      const [size, sql] = this.#inserts.select(rows.length - start)
      const slice = rows.slice(start, start + size)
      start += size
      const last = await ignoreUniqueViolation(tx.insert(sql, flattenRows(slice)))
      // The ids are consecutive, because no other connection can write now.
      if (last !== undefined) for (let id = last - size + 1; id <= last; id++) ids.push(id)
      else await this.#insertRowByRow(tx, slice, ids)
    }
    return ids
  }

  /** The statement for all rows has stored nothing. */
  async #insertRowByRow(tx: Transaction, rows: SqlRows, ids: (number | undefined)[]): Promise<void> {
    const [, sql] = this.#inserts.select(1)
    for (const row of rows) ids.push(await ignoreUniqueViolation(tx.insert(sql, row)))
  }

  async update(tx: Transaction, updated: UpdatedColumns, rows: SqlRows): Promise<boolean[]> {
    const cached = this.#updates.get(updated.key)
    const statements = cached ?? compileUpdates(this.#table, updated.columns)
    if (!cached && this.#updates.size < MAX_CACHED_UPDATES) this.#updates.set(updated.key, statements)
    return runGuarded(tx, statements, rows)
  }

  async delete(tx: Transaction, rows: SqlRows): Promise<boolean[]> {
    return runGuarded(tx, (this.#deletes ??= compileDeletes(this.#table)), rows)
  }
}

async function ignoreUniqueViolation(insert: Promise<number>): Promise<number | undefined> {
  try {
    return await insert
  } catch (error) {
    if (error instanceof UniqueViolation) return undefined
    throw error
  }
}

async function runGuarded(tx: Transaction, statements: SizedStatements, rows: SqlRows): Promise<boolean[]> {
  const [, rowSql] = statements.select(1)
  const results: boolean[] = []
  for (let start = 0; start < rows.length;) {
    const [size, sql] = statements.select(rows.length - start)
    const slice = rows.slice(start, start + size)
    start += size
    if (size > 1 && (await runWhole(tx, sql, slice))) for (let row = 0; row < size; row++) results.push(true)
    else for (const row of slice) results.push((await tx.run(rowSql, row)) === 1)
  }
  return results
}

/** Writes all rows or none. */
async function runWhole(tx: Transaction, sql: string, rows: SqlRows): Promise<boolean> {
  await tx.run(`savepoint ${SAVEPOINT}`)
  const isWhole = (await tx.run(sql, flattenRows(rows))) === rows.length
  if (!isWhole) await tx.run(`rollback to ${SAVEPOINT}`)
  await tx.run(`release ${SAVEPOINT}`)
  return isWhole
}

export function createValuesInsert({ table, columns, log }: BulkInsertTarget): BulkInsert {
  const names = columns.map(({ name }) => quoteIdentifier(name)).join(', ')
  const row = `(${columns.map(({ name }) => (name === log?.timeColumn ? log.lock.raiseTime('?') : '?')).join()})`
  const statements = new SizedStatements(
    limitSizes(INSERT_SIZES, columns.length),
    (size) => `insert into ${table} (${names}) values ${repeatSql(size, row, ',')}`,
  )
  return new ChunkedInsert((maxRows) => statements.select(maxRows), flattenRows)
}

function compileInserts(table: string, columns: readonly JsonColumn[]): SizedStatements {
  const names = columns.map(({ name }) => quoteIdentifier(name)).join(', ')
  const row = `(0, ${columns.map(() => '?').join(', ')})`
  return new SizedStatements(
    limitSizes(INSERT_SIZES, columns.length),
    (size) => `insert into ${table} ("version", ${names}) values ${repeatSql(size, row, ', ')}`,
  )
}

/** The parameters of each row are its id, its expected version and the new values. */
function compileUpdates(table: string, columns: readonly JsonColumn[]): SizedStatements {
  const width = columns.length + 2
  const compileSets = (toValue: (position: number) => string) =>
    columns.map(({ name }, index) => `${quoteIdentifier(name)} = ${toValue(index + 3)}, `).join('')
  const row = `(${repeatSql(width, '?', ', ')})`
  return new SizedStatements(limitSizes(GUARDED_SIZES, width), (size) =>
    size === 1
      ? `update ${table} set ${compileSets((position) => `?${position}`)}"version" = "version" + 1 where "id" = ?1 and "version" = ?2`
      : `update ${table} as t set ${compileSets((position) => `"new".column${position}`)}"version" = t."version" + 1 ` +
        `from (values ${repeatSql(size, row, ', ')}) as "new" where t."id" = "new".column1 and t."version" = "new".column2`,
  )
}

/** The parameters of each row are its id and its expected version. */
function compileDeletes(table: string): SizedStatements {
  return new SizedStatements(GUARDED_SIZES, (size) =>
    size === 1
      ? `delete from ${table} where "id" = ? and "version" = ?`
      : `delete from ${table} where ("id", "version") in (values ${repeatSql(size, '(?, ?)', ', ')})`,
  )
}
