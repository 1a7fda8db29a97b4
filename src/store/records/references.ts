// References between records.
import type { ModelField } from '../../model/catalog/catalog.js'
import type { Dialect, Queryable, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { isReference } from '../../model/definition/model.js'
import { toLinkTableName } from '../sql/relation.js'
import type { Table } from '../sql/table.js'

/** Returns the ids of existing records, and locks these records against deletion until the transaction ends. */
export async function lockReferenced(
  tx: Transaction,
  { name, dialect }: Table,
  ids: readonly number[],
): Promise<Set<number>> {
  if (ids.length === 0) return new Set()
  // Row locks do not separate the writers of a group commit.
  tx.requireExclusive()
  const rows = await tx.all(
    `select "id" from ${name} where "id" in (${dialect.json.unnest('integer')}) order by "id"${dialect.lockForReference}`,
    [JSON.stringify(ids)],
  )
  return new Set(rows.map((row) => Number(row['id'])))
}

/** A field that can refer to records of the target model. */
export interface Referrer {
  readonly model: string
  readonly field: string
  readonly target: string
  /** True for a many-to-many relation, which stores its references in a link table. */
  readonly isLink: boolean
}

export function toReferrer({ model, field }: ModelField): Referrer {
  return { model: model.name, field: field.name, target: field.relation?.target ?? '', isLink: false }
}

export interface ReferringRecords {
  readonly total: number
  /** The smallest ids, at most MAX_SHOWN_REFERRERS. */
  readonly ids: readonly number[]
  /** The id that the first of these records refers to. */
  readonly firstTarget: number
}

const MAX_SHOWN_REFERRERS = 10

/** Finds the records whose field refers to one of `ids`. */
export async function findReferringRecords(
  db: Queryable,
  dialect: Dialect,
  { model, field, isLink }: Referrer,
  ids: readonly number[],
): Promise<ReferringRecords> {
  const [table, id, column] = isLink
    ? [toLinkTableName(model, field), '"owner"', '"member"']
    : [toTableName(model), '"id"', quoteIdentifier(field)]
  const where = `from ${quoteIdentifier(table)} where ${column} in (${dialect.json.unnest('integer')})`
  const params = [JSON.stringify(ids)]
  const columns = `${id} as "id", ${column} as "to"`
  const rows = await db.all(
    `select ${columns} ${where} order by ${id} limit ${MAX_SHOWN_REFERRERS + 1}`,
    params,
  )
  const firstIds = rows.slice(0, MAX_SHOWN_REFERRERS).map((row) => Number(row['id']))
  const firstTarget = Number(rows[0]?.['to'])
  if (rows.length <= MAX_SHOWN_REFERRERS) return { total: rows.length, ids: firstIds, firstTarget }
  const [count] = await db.all(`select count(*) as "total" ${where}`, params)
  return { total: Number(count?.['total']), ids: firstIds, firstTarget }
}

/** Reads the ids that a record refers to, by field. The referenced records may not exist. */
export async function readReferences(
  db: Queryable,
  { name, storedFields }: Table,
  id: number,
): Promise<Map<string, number>> {
  const fields = storedFields.filter((field) => isReference(field) && !field.isSystem)
  if (fields.length === 0) return new Map()
  const columns = fields.map((field) => quoteIdentifier(field.name)).join(', ')
  const [row = {}] = await db.all(`select ${columns} from ${name} where "id" = ?`, [id])
  return new Map(
    fields.flatMap(({ name: field }): [string, number][] => {
      const target = row[field] ?? null
      return target === null ? [] : [[field, Number(target)]]
    }),
  )
}
