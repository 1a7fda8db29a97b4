// Writes the rows of several group members in one statement. A member whose row is not in the result has written nothing.
import type { Field } from '../../model/values/field.js'
import type { JsonColumn, BatchSql, SqlValue, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { toColumnLists } from '../sql/bulk-insert.js'
import { toJsonColumn } from '../sql/column.js'
import type { Table } from '../sql/table.js'

/** Inserts new records; the values of each row are in the order of the stored fields. A unique violation skips only its own row. */
export async function insertMany(
  tx: Transaction,
  table: Table,
  rows: readonly (readonly SqlValue[])[],
): Promise<(number | undefined)[]> {
  const { storedFields, model } = table
  const many = requireBatchSql(table)
  const names = storedFields.map(({ name }) => quoteIdentifier(name)).join(', ')
  // The result contains the row number, because the order of the returned rows is not guaranteed.
  const sql =
    `with "new" as materialized (select ${many.nextId(toTableName(model.name))} as "id", "rows".* ` +
    `from (${many.unnest(storedFields.map(toJsonColumn))}) as "rows"), ` +
    `"stored" as (insert into ${table.name} ("id", "version", ${names}) select "id", 0, ${names} from "new" ` +
    `on conflict do nothing returning "id") ` +
    `select "id", "$row" as "row" from "new" where "id" in (select "id" from "stored")`
  const inserted = await tx.all(sql, toColumnLists(many, storedFields.length, rows))
  const ids = new Map(inserted.map((row) => [Number(row['row']), Number(row['id'])]))
  return rows.map((_, index) => ids.get(index + 1))
}

export interface BatchUpdate {
  readonly id: number
  /** The version guard: the record must still have this version. */
  readonly version: number
  readonly params: readonly SqlValue[]
}

/**
 * Updates these fields of all records in one guarded statement. The result is undefined for a record with another version, and for a row that
 * another transaction has locked: waiting for several locks here could deadlock.
 */
export async function updateMany(
  tx: Transaction,
  table: Table,
  fields: readonly Field[],
  updates: readonly BatchUpdate[],
): Promise<(true | undefined)[]> {
  const many = requireBatchSql(table)
  const columns: JsonColumn[] = [UPDATE_KEYS.id, UPDATE_KEYS.version, ...fields.map(toJsonColumn)]
  const sets = fields
    .map(({ name }) => `${quoteIdentifier(name)} = "new".${quoteIdentifier(name)}, `)
    .join('')
  const sql =
    `with "new" as materialized (${many.unnest(columns)}), "held" as materialized (` +
    `select t."id" from ${table.name} as t where t."id" in (select "$id" from "new") order by t."id"` +
    `${table.dialect.lockForUpdate}${many.skipLocked}) ` +
    `update ${table.name} as t set ${sets}"version" = t."version" + 1 from "new" ` +
    `where t."id" = "new"."$id" and t."version" = "new"."$version" and t."id" in (select "id" from "held") ` +
    `returning t."id" as "id"`
  const rows = updates.map(({ id, version, params }) => [id, version, ...params])
  const updated = await tx.all(sql, toColumnLists(many, columns.length, rows))
  const updatedIds = new Set(updated.map((row) => Number(row['id'])))
  return updates.map(({ id }) => (updatedIds.has(id) ? true : undefined))
}

const UPDATE_KEYS = {
  id: { name: '$id', storage: 'integer' },
  version: { name: '$version', storage: 'integer' },
} as const satisfies Record<string, JsonColumn>

function requireBatchSql({ dialect }: Table): BatchSql {
  if (!dialect.batch) throw new Error('this engine has no batched writes')
  return dialect.batch
}
