// Who refers to whom.
import type { FieldOf } from '../../model/catalog/catalog.js'
import type { Dialect, Queryable, Transaction } from '../engine/database.js'
import { quote, tableName } from '../engine/names.js'
import { isReference } from '../../model/definition/model.js'
import { linkTable } from '../sql/relation.js'
import type { Table } from '../sql/table.js'

/** Those of the ids that are there. Until the transaction ends nobody removes them. */
export async function holdReferenced(
  tx: Transaction,
  { name, dialect }: Table,
  ids: readonly number[],
): Promise<Set<number>> {
  if (ids.length === 0) return new Set()
  // What is held is not held against those who share the transaction.
  tx.shared?.leave()
  const rows = await tx.all(
    `select "id" from ${name} where "id" in (${dialect.json.rows('integer')}) order by "id"${dialect.lockReferenced}`,
    [JSON.stringify(ids)],
  )
  return new Set(rows.map((row) => Number(row['id'])))
}

/** A field that may refer to a record of the target. */
export interface Referrer {
  readonly model: string
  readonly field: string
  readonly target: string
  /** A many-to-many: what refers stands in a table of links. */
  readonly isLink: boolean
}

export function referrerOf({ model, field }: FieldOf): Referrer {
  return { model: model.name, field: field.name, target: field.relation?.target ?? '', isLink: false }
}

export interface Referring {
  readonly total: number
  /** The first of them. */
  readonly ids: readonly number[]
  /** What the very first refers to. */
  readonly to: number
}

const SHOWN_REFERRING = 10

/** The records whose field refers to one of these. */
export async function referringTo(
  db: Queryable,
  dialect: Dialect,
  { model, field, isLink }: Referrer,
  ids: readonly number[],
): Promise<Referring> {
  const [table, id, column] = isLink
    ? [linkTable(model, field), '"owner"', '"member"']
    : [tableName(model), '"id"', quote(field)]
  const where = `from ${quote(table)} where ${column} in (${dialect.json.rows('integer')})`
  const params = [JSON.stringify(ids)]
  const columns = `${id} as "id", ${column} as "to"`
  const rows = await db.all(`select ${columns} ${where} order by ${id} limit ${SHOWN_REFERRING + 1}`, params)
  const shown = rows.slice(0, SHOWN_REFERRING).map((row) => Number(row['id']))
  const to = Number(rows[0]?.['to'])
  if (rows.length <= SHOWN_REFERRING) return { total: rows.length, ids: shown, to }
  const [count] = await db.all(`select count(*) as "total" ${where}`, params)
  return { total: Number(count?.['total']), ids: shown, to }
}

/** The ids that a record refers to, by field, whether there is anything under them or not. */
export async function referencesHeld(
  db: Queryable,
  { name, stored }: Table,
  id: number,
): Promise<Map<string, number>> {
  const fields = stored.filter((field) => isReference(field) && !field.kept)
  if (fields.length === 0) return new Map()
  const columns = fields.map((field) => quote(field.name)).join(', ')
  const [row = {}] = await db.all(`select ${columns} from ${name} where "id" = ?`, [id])
  return new Map(
    fields.flatMap(({ name: field }): [string, number][] => {
      const held = row[field] ?? null
      return held === null ? [] : [[field, Number(held)]]
    }),
  )
}
