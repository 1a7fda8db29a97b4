// Inserts, updates and deletes records. A list of records takes few statements; the results are those of one statement for each record.
// Also loads what the transaction of a write must check: whether another node has changed the tables or revoked access.
import type { Values } from '../../model/values/value.js'
import { REVOCATION_COUNT_SQL } from '../auth/permissions-version.js'
import type { Queryable, SqlRows, SqlValue, Transaction, WriteBatchWork } from '../engine/database.js'
import type { RowUpdate, Table, UpdateStatement } from '../sql/table.js'
import { toNotUniqueError } from './not-unique.js'

/** Inserts records with version 0 and returns their ids. */
export async function insertRows(tx: Transaction, table: Table, rows: readonly Values[]): Promise<number[]> {
  const { rowWriter } = table
  const [first] = rows
  if (first && rows.length === 1)
    return [await tx.batchWrite(new RowInsertWork(table), rowWriter.encode(first))]
  tx.requireExclusive()
  return insertMany(
    tx,
    table,
    rows.map((row) => rowWriter.encode(row)),
  )
}

export interface RecordUpdate {
  readonly id: number
  /** The version that the update was made from. The record must still have this version. */
  readonly version: number
  readonly values: Values
}

/** Updates each record in a statement that checks and increments its version. Returns false for each record whose version differed. */
export async function updateRows(
  tx: Transaction,
  table: Table,
  updates: readonly RecordUpdate[],
): Promise<boolean[]> {
  const encoded = updates.map(({ id, version, values }) => table.rowWriter.buildUpdate(id, version, values))
  const [first] = encoded
  if (first && encoded.length === 1)
    return [await tx.batchWrite(new RowUpdateWork(table, first.statement), first)]
  tx.requireExclusive()
  return updateMany(tx, table, encoded)
}

/** Updates a row that this transaction has written before. Its version stays: the transaction has incremented it already. */
export async function updateRowAgain(tx: Transaction, table: Table, update: RecordUpdate): Promise<boolean> {
  tx.requireExclusive()
  const { statement, params, id, version } = table.rowWriter.buildUpdate(
    update.id,
    update.version,
    update.values,
  )
  try {
    return (await tx.run(statement.sqlKeepingVersion, [...params, id, version])) === 1
  } catch (error) {
    throw toNotUniqueError(table, error, 0)
  }
}

/** Inserts one row, or the rows of several members of a group. A unique index refuses only the row of one member. */
class RowInsertWork implements WriteBatchWork<readonly SqlValue[], number> {
  constructor(private readonly table: Table) {}

  get key(): string {
    return `insert ${this.table.name}`
  }

  runOne(tx: Transaction, row: readonly SqlValue[]): Promise<number> {
    return insertOne(tx, this.table, row, 0)
  }

  runMany(tx: Transaction, rows: SqlRows): Promise<(number | undefined)[]> {
    return this.table.rowWriter.lists.insert(tx, rows)
  }
}

/** Updates one row, or the same fields of the rows of several members of a group. */
class RowUpdateWork implements WriteBatchWork<RowUpdate, boolean> {
  constructor(
    private readonly table: Table,
    private readonly statement: UpdateStatement,
  ) {}

  get key(): string {
    return `update ${this.table.name} ${this.statement.key}`
  }

  runOne(tx: Transaction, update: RowUpdate): Promise<boolean> {
    return updateOne(tx, this.table, update, 0)
  }

  /** Also refuses rows that other transactions have locked: waiting for several locks could deadlock. */
  async runMany(tx: Transaction, updates: readonly RowUpdate[]): Promise<(true | undefined)[]> {
    return (await updateSameFields(tx, this.table, updates, true)).map((isDone) => isDone || undefined)
  }
}

/** Inserts new records; the values of each row are in the order of the stored fields. Returns their ids. */
async function insertMany(tx: Transaction, table: Table, rows: SqlRows): Promise<number[]> {
  const ids: number[] = []
  for (let row = rows[0]; row; row = rows[ids.length]) {
    if (ids.length === rows.length - 1) ids.push(await insertOne(tx, table, row, ids.length))
    else await insertUpToRefused(tx, table, rows, ids)
  }
  return ids
}

/** `index` is the index of the row in its list. */
async function insertOne(
  tx: Transaction,
  table: Table,
  row: readonly SqlValue[],
  index: number,
): Promise<number> {
  try {
    return await tx.insert(table.rowWriter.insertSql, row)
  } catch (error) {
    throw toNotUniqueError(table, error, index)
  }
}

/** Inserts the rows after those that have an id. A row that a unique index refused is inserted again, alone, which reports the error. */
async function insertUpToRefused(tx: Transaction, table: Table, rows: SqlRows, ids: number[]): Promise<void> {
  const inserted = await table.rowWriter.lists.insert(tx, rows.slice(ids.length))
  const refused = inserted.indexOf(undefined)
  for (const id of refused < 0 ? inserted : inserted.slice(0, refused)) if (id !== undefined) ids.push(id)
  const row = rows[ids.length]
  if (!row) return
  // The index that is reported must not depend on later rows.
  const later = inserted.slice(refused).filter((id) => id !== undefined)
  const { name, dialect } = table
  if (later.length > 0)
    await tx.run(`delete from ${name} where "id" in (${dialect.json.unnest('integer')})`, [
      JSON.stringify(later),
    ])
  ids.push(await insertOne(tx, table, row, ids.length))
}

/** Updates each record whose version is the expected one; false for the others. */
async function updateMany(tx: Transaction, table: Table, updates: readonly RowUpdate[]): Promise<boolean[]> {
  const results: boolean[] = []
  if (mustUpdateOneByOne(table, updates)) {
    for (const [index, update] of updates.entries()) results.push(await updateOne(tx, table, update, index))
    return results
  }
  for (const indexes of groupByKey(updates)) {
    const group = indexes.flatMap((index) => updates[index] ?? [])
    const written = await updateSameFields(tx, table, group)
    indexes.forEach((index, position) => (results[index] = written[position] === true))
  }
  return results
}

/** `index` is the index of the update in its list. */
async function updateOne(
  tx: Transaction,
  table: Table,
  { statement, params, id, version }: RowUpdate,
  index: number,
): Promise<boolean> {
  try {
    return (await tx.run(statement.sql, [...params, id, version])) === 1
  } catch (error) {
    throw toNotUniqueError(table, error, index)
  }
}

/** Updates the same fields of all records. `skipsLocked` skips rows that other transactions have locked. */
async function updateSameFields(
  tx: Transaction,
  table: Table,
  updates: readonly RowUpdate[],
  skipsLocked = false,
): Promise<boolean[]> {
  const [first] = updates
  if (!first) return []
  const rows = updates.map(({ id, version, params }) => [id, version, ...params])
  return table.rowWriter.lists.update(tx, first.statement, rows, skipsLocked)
}

/**
 * A statement for several rows does not tell which row violates a unique index, and on PostgreSQL the transaction ends with the error. A
 * record that is updated twice needs two statements.
 */
function mustUpdateOneByOne({ model }: Table, updates: readonly RowUpdate[]): boolean {
  if (new Set(updates.map(({ id }) => id)).size < updates.length) return true
  return updates.some(({ statement }) => statement.fields.some(({ name }) => model.uniqueFields.has(name)))
}

/** The indexes of the updates with the same fields. */
function groupByKey(updates: readonly RowUpdate[]): Iterable<readonly number[]> {
  const groups = new Map<string, number[]>()
  updates.forEach(({ statement: { key } }, index) => {
    const group = groups.get(key)
    if (group) group.push(index)
    else groups.set(key, [index])
  })
  return groups.values()
}

export interface RecordRemoval {
  readonly id: number
  readonly version: number
}

/** Deletes each record in a statement that checks its version. Returns false for each record whose version differed. */
export async function deleteRows(
  tx: Transaction,
  table: Table,
  removals: readonly RecordRemoval[],
): Promise<boolean[]> {
  const isList = removals.length > 1 && new Set(removals.map(({ id }) => id)).size === removals.length
  if (isList)
    return table.rowWriter.lists.delete(
      tx,
      removals.map(({ id, version }) => [id, version]),
    )
  const results: boolean[] = []
  for (const { id, version } of removals) {
    const sql = `delete from ${table.name} where "id" = ? and "version" = ?`
    results.push((await tx.run(sql, [id, version])) === 1)
  }
  return results
}

export interface WritePreconditions {
  /** False if a node with newer models has changed the tables. */
  readonly isSchemaCurrent: boolean
  /** The number of sessions, keys and accounts that were revoked so far. */
  readonly revocationCount: number
}

/** Loads everything that a write of these models must know about the actions of other nodes, in one statement. */
export async function loadWritePreconditions(
  tx: Transaction,
  snapshots: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<WritePreconditions> {
  return tx.memoize(`state ${models.join()}`, () => readWritePreconditions(tx, snapshots, models))
}

export async function isSchemaCurrent(
  db: Queryable,
  snapshots: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<boolean> {
  return (await readWritePreconditions(db, snapshots, models)).isSchemaCurrent
}

async function readWritePreconditions(
  db: Queryable,
  snapshots: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<WritePreconditions> {
  const marks = models.map(() => '?').join(', ')
  const sql = `select model, shape, ${REVOCATION_COUNT_SQL} as "ends" from verso_schema where model in (${marks})`
  const rows = await db.all(sql, models)
  const current = new Map(rows.map((row) => [row['model'], row['shape']]))
  return {
    isSchemaCurrent: models.every((model) => current.get(model) === snapshots.get(model)),
    revocationCount: Number(rows[0]?.['ends'] ?? 0),
  }
}
