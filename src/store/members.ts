// Who stands in an owned list, and who is referred to by whom.
import type { FieldOf } from '../model/catalog.js'
import type { Dialect, Queryable, Transaction } from './database.js'
import { quote, tableName } from './names.js'
import { membershipOf } from './relation-sql.js'
import type { Table } from './table.js'

/** The members of one owner's list, by id. */
export async function membersOf(db: Queryable, list: FieldOf, owner: number): Promise<number[]> {
  const { table, owner: own, member } = membershipOf(list)
  const rows = await db.all(
    `select ${member} as "member" from ${table} where ${own} = ? order by ${member}`,
    [owner],
  )
  return rows.map((row) => Number(row['member']))
}

/** The owners whose list holds this member. */
export async function ownersOf(db: Queryable, list: FieldOf, member: number): Promise<number[]> {
  const { table, owner, member: own } = membershipOf(list)
  const rows = await db.all(`select ${owner} as "owner" from ${table} where ${own} = ? order by ${owner}`, [
    member,
  ])
  return rows.map((row) => Number(row['owner']))
}

/** The owners whose lists hold one of these members. */
export async function ownersOfAny(
  db: Queryable,
  dialect: Dialect,
  list: FieldOf,
  members: readonly number[],
): Promise<number[]> {
  const { table, owner, member } = membershipOf(list)
  const rows = await db.all(
    `select distinct ${owner} as "owner" from ${table} where ${member} in (${dialect.json.rows('integer')}) and ${owner} is not null`,
    [JSON.stringify(members)],
  )
  return rows.map((row) => Number(row['owner']))
}

/** Of a many-to-many: the other side of a one-to-many is a field of its members. */
export async function link(
  tx: Transaction,
  list: FieldOf,
  owner: number,
  members: readonly number[],
): Promise<void> {
  const { table } = membershipOf(list)
  for (const member of members)
    await tx.run(`insert into ${table} ("owner", "member") values (?, ?)`, [owner, member])
}

export async function unlink(
  tx: Transaction,
  list: FieldOf,
  owner: number,
  members: readonly number[],
): Promise<void> {
  const { table } = membershipOf(list)
  for (const member of members)
    await tx.run(`delete from ${table} where "owner" = ? and "member" = ?`, [owner, member])
}

/** Takes a record that is going out of all links of a many-to-many, as their owner or as a member. */
export async function unlinkAll(
  tx: Transaction,
  list: FieldOf,
  side: 'owner' | 'member',
  id: number,
): Promise<void> {
  await tx.run(`delete from ${membershipOf(list).table} where "${side}" = ?`, [id])
}

/** Those of the ids that are there. Until the transaction ends nobody removes them. */
export async function holdReferenced(
  tx: Transaction,
  { name, dialect }: Table,
  ids: readonly number[],
): Promise<Set<number>> {
  const rows = await tx.all(
    `select "id" from ${name} where "id" in (${dialect.json.rows('integer')}) order by "id"${dialect.lockReferenced}`,
    [JSON.stringify(ids)],
  )
  return new Set(rows.map((row) => Number(row['id'])))
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
  { model, field }: FieldOf,
  ids: readonly number[],
): Promise<Referring> {
  const where = `from ${quote(tableName(model.name))} where ${quote(field.name)} in (${dialect.json.rows('integer')})`
  const params = [JSON.stringify(ids)]
  const columns = `"id", ${quote(field.name)} as "to"`
  const rows = await db.all(`select ${columns} ${where} order by "id" limit ${SHOWN_REFERRING + 1}`, params)
  const shown = rows.slice(0, SHOWN_REFERRING).map((row) => Number(row['id']))
  const to = Number(rows[0]?.['to'])
  if (rows.length <= SHOWN_REFERRING) return { total: rows.length, ids: shown, to }
  const [count] = await db.all(`select count(*) as "total" ${where}`, params)
  return { total: Number(count?.['total']), ids: shown, to }
}
