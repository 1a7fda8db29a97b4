// Reads, evaluates and locks records.
import type { Criteria } from '../../model/query/criteria.js'
import type { WireRecord } from '../../wire.js'
import { parseStoredJson } from '../engine/write-health.js'
import { compilePredicate, SqlScope } from '../sql/criteria.js'
import type { BatchWork, Queryable, Row, SqlValue, Transaction } from '../engine/database.js'
import { compileLimit } from '../sql/parameters.js'
import type { PointRead, ReadFilter } from '../sql/point-read.js'
import { FoundRecord } from '../sql/found.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

export interface IdScan {
  /** The scan returns records with greater ids. */
  readonly after: number
  readonly limit: number
  readonly where?: Criteria | undefined
  /** Criteria of the records that the user may read. */
  readonly visible?: Criteria | undefined
  readonly select?: Select
  /** Excludes archived records. Only for models with an `archived` field. */
  readonly excludesArchived?: boolean
}

/** Reads the next records in the order of their ids (keyset pagination). Includes archived records unless `excludesArchived` is set. */
export async function scanById(db: Queryable, table: Table, scan: IdScan): Promise<WireRecord[]> {
  const { select = table.full } = scan
  return (await scanRows(db, table, scan, select)).map((row) => select.toRecord(row))
}

/** Runs the scan of `scanById` and returns rows with the columns of `select`. */
export async function scanRows(
  db: Queryable,
  table: Table,
  { after, limit, where, visible, excludesArchived = false }: IdScan,
  select: Pick<Select, 'columns' | 'params'>,
): Promise<Row[]> {
  const scope = new SqlScope(table.dialect)
  const unarchived = excludesArchived ? 'and t."archived" is not true ' : ''
  const permitted = visible ? `and ${scope.compilePermission(visible)} ` : ''
  const condition = unarchived + permitted + (where ? `and ${scope.compileWhere(where)} ` : '')
  const { sql: joins, params: joined } = scope.render(scope.joins)
  const { sql, params } = scope.render(condition)
  const from = `from ${table.name} as t ${joins} where t."id" > ? ${sql}order by t."id" ${compileLimit()}`
  const all = [...select.params, ...joined, after, ...params, limit]
  return db.all(`select ${select.columns} ${from}`, all)
}

export async function readRow(
  db: Queryable,
  id: number,
  read: PointRead,
  filter?: ReadFilter,
): Promise<Row | undefined> {
  return db.batch(new FilteredRead(read, filter), id)
}

/** Reads rows in the order of the ids; undefined for a row that does not exist or that the filter excludes. */
async function readRows(
  db: Queryable,
  ids: readonly number[],
  read: PointRead,
  filter?: ReadFilter,
): Promise<(Row | undefined)[]> {
  return new FilteredRead(read, filter).runMany(db, ids)
}

/** A read with further conditions after the id. */
class FilteredRead implements BatchWork<Queryable, number, Row | undefined> {
  readonly #and: string
  readonly #after: readonly SqlValue[] | undefined

  constructor(
    private readonly read: PointRead,
    { visible, within }: ReadFilter = {},
  ) {
    let and = ''
    let after: SqlValue[] | undefined
    if (visible) {
      const { sql, params } = compilePredicate(read.dialect, visible)
      and += ` and ${sql}`
      after = [...params]
    }
    if (within) {
      const { size, maxBytes } = within
      and += ` and ${size.sql} <= ?`
      after = [...(after ?? []), ...size.params, maxBytes]
    }
    this.#and = and
    this.#after = after
  }

  /** Contains the conditions: reads with different conditions must not share a statement. */
  get key(): string {
    const { byId, params } = this.read
    const after = this.#after ?? []
    const sql = byId + this.#and
    return params.length + after.length === 0 ? sql : JSON.stringify([sql, params, after])
  }

  async runOne(db: Queryable, id: number): Promise<Row | undefined> {
    const { byId, params } = this.read
    const [row] = this.#after
      ? await db.all(byId + this.#and, [...params, id, ...this.#after])
      : await db.all(byId, [...params, id])
    return row
  }

  async runMany(db: Queryable, ids: readonly number[]): Promise<(Row | undefined)[]> {
    const [first] = ids
    if (first !== undefined && ids.length === 1) return [await this.runOne(db, first)]
    const { dialect, upToId, params } = this.read
    const sql = `${upToId} in (${dialect.json.unnest('integer')})${this.#and}`
    const rows = await db.all(sql, [...params, JSON.stringify(ids), ...(this.#after ?? [])])
    const byId = new Map(rows.map((row) => [row['id'], row]))
    return ids.map((id) => byId.get(id))
  }
}

export interface ReadOptions {
  /** `table.own` by default, which writes need: it has no names of list members. */
  readonly select?: Select
  readonly filter?: ReadFilter | undefined
}

/** Reads a record as JSON text and as a value. */
export async function findById(
  db: Queryable,
  table: Table,
  id: number,
  { select = table.own, filter }: ReadOptions = {},
): Promise<FoundRecord | undefined> {
  const { json } = select
  const row = await readRow(db, id, json ?? select, filter)
  return row && new FoundRecord(Number(row['version']), json ? String(row['text']) : select.toRecord(row))
}

/** Reads records in the order of the ids; undefined for a record that does not exist or that the filter excludes. */
export async function readByIds(
  db: Queryable,
  table: Table,
  ids: readonly number[],
  { select = table.own, filter }: ReadOptions = {},
): Promise<(WireRecord | undefined)[]> {
  const json = table.dialect.prefersJsonText ? select.json : undefined
  const rows = await readRows(db, ids, json ?? select, filter)
  return rows.map((row) => row && decodeRow(row, select, json !== undefined))
}

/** Reads a record as a value only. */
export async function readById(
  db: Queryable,
  table: Table,
  id: number,
  { select = table.own, filter }: ReadOptions = {},
): Promise<WireRecord | undefined> {
  const json = table.dialect.prefersJsonText ? select.json : undefined
  const row = await readRow(db, id, json ?? select, filter)
  return row && decodeRow(row, select, json !== undefined)
}

function decodeRow(row: Row, select: Select, isJson: boolean): WireRecord {
  return isJson ? (parseStoredJson(row['text']) as WireRecord) : select.toRecord(row)
}

/** Evaluates each criteria against a record; undefined if the record does not exist. */
export async function evaluateCriteria(
  db: Queryable,
  table: Table,
  id: number,
  criteria: readonly Criteria[],
): Promise<boolean[] | undefined> {
  const scope = new SqlScope(table.dialect)
  const tests = criteria.map(
    (each, index) => `, case when ${scope.compilePermission(each)} then 1 else 0 end as "c${index}"`,
  )
  const { sql, params } = scope.render(tests.join(''))
  const select = `select 1 as "one"${sql}, t."id" as "id" from ${table.name} as t where t."id"`
  const [row] = await db.all(`${select} = ?`, [...params, id])
  return row && criteria.map((_, index) => row[`c${index}`] === 1)
}

/** Returns the ids of the existing records that meet the criteria. */
export async function filterIds(
  db: Queryable,
  table: Table,
  ids: readonly number[],
  criteria: Criteria,
): Promise<Set<number>> {
  const { sql, params } = compilePredicate(table.dialect, criteria)
  const some = `t."id" in (${table.dialect.json.unnest('integer')})`
  const statement = `select t."id" as "id" from ${table.name} as t where ${some} and ${sql}`
  const rows = await db.all(statement, [JSON.stringify(ids), ...params])
  return new Set(rows.map((row) => Number(row['id'])))
}

export async function findVersion(db: Queryable, table: Table, id: number): Promise<number | undefined> {
  const [row] = await db.all(`select "version" from ${table.name} where "id" = ?`, [id])
  return row && Number(row['version'])
}

/** Reads and locks a record. Other transactions cannot change the record until this transaction ends. */
export async function readForUpdate(
  tx: Transaction,
  table: Table,
  id: number,
): Promise<WireRecord | undefined> {
  await lockRecord(tx, table, id, table.dialect.lockForUpdate)
  return readById(tx, table, id)
}

/** Locks records in the order of their ids, so that two transactions cannot deadlock. */
export async function lockRecords(
  tx: Transaction,
  { name, dialect }: Table,
  ids: readonly number[],
  lockClause: string,
): Promise<void> {
  tx.requireExclusive()
  if (lockClause === '') return
  const sql = `select 1 from ${name} where "id" in (${dialect.json.unnest('integer')}) order by "id"${lockClause}`
  await tx.all(sql, [JSON.stringify(ids)])
}

/** Locks a record against changes and against new references to it. */
export async function lockForRemoval(tx: Transaction, table: Table, id: number): Promise<void> {
  await lockRecord(tx, table, id, table.dialect.lockForRemoval)
}

/** Row locks do not separate the writers of a group commit, so a lock requires an exclusive transaction. */
async function lockRecord(tx: Transaction, table: Table, id: number, lockClause: string): Promise<void> {
  tx.requireExclusive()
  if (lockClause !== '') await tx.all(`select 1 from ${table.name} where "id" = ?${lockClause}`, [id])
}
