// Members of owned lists.
import type { ModelField } from '../../model/catalog/catalog.js'
import type { Dialect, Queryable, Transaction } from '../engine/database.js'
import { findMembership } from '../sql/relation.js'

/** Finds the members of one owner's list, in the order of their ids. */
export async function findMembers(db: Queryable, list: ModelField, owner: number): Promise<number[]> {
  const { table, owner: ownerColumn, member } = findMembership(list)
  const rows = await db.all(
    `select ${member} as "member" from ${table} where ${ownerColumn} = ? order by ${member}`,
    [owner],
  )
  return rows.map((row) => Number(row['member']))
}

/** Finds the owners whose lists contain the member. */
export async function findOwners(db: Queryable, list: ModelField, member: number): Promise<number[]> {
  const { table, owner, member: memberColumn } = findMembership(list)
  const rows = await db.all(
    `select ${owner} as "owner" from ${table} where ${memberColumn} = ? order by ${owner}`,
    [member],
  )
  return rows.map((row) => Number(row['owner']))
}

/** Finds the owners whose lists contain at least one of the members. */
export async function findOwnersOfAny(
  db: Queryable,
  dialect: Dialect,
  list: ModelField,
  members: readonly number[],
): Promise<number[]> {
  const { table, owner, member } = findMembership(list)
  const rows = await db.all(
    `select distinct ${owner} as "owner" from ${table} where ${member} in (${dialect.json.unnest('integer')}) and ${owner} is not null`,
    [JSON.stringify(members)],
  )
  return rows.map((row) => Number(row['owner']))
}

/** The list of one owner. */
export interface OwnedList {
  readonly list: ModelField
  readonly owner: number
}

/** Adds links of a many-to-many relation. (A one-to-many relation is a field of its members, which an update of the members sets.) */
export async function addMembers(
  tx: Transaction,
  { json }: Dialect,
  { list, owner }: OwnedList,
  members: readonly number[],
): Promise<void> {
  if (members.length === 0) return
  const { table } = findMembership(list)
  await tx.run(
    `insert into ${table} ("owner", "member") select cast(? as bigint), "value" from (${json.unnest('integer')}) as "added"`,
    [owner, JSON.stringify(members)],
  )
}

export async function removeMembers(
  tx: Transaction,
  { json }: Dialect,
  { list, owner }: OwnedList,
  members: readonly number[],
): Promise<void> {
  if (members.length === 0) return
  const { table } = findMembership(list)
  await tx.run(`delete from ${table} where "owner" = ? and "member" in (${json.unnest('integer')})`, [
    owner,
    JSON.stringify(members),
  ])
}

/** Deletes all links of a many-to-many relation that have the record as their owner or as their member, before the record is deleted. */
export async function removeAllMemberships(
  tx: Transaction,
  list: ModelField,
  side: 'owner' | 'member',
  id: number,
): Promise<void> {
  await tx.run(`delete from ${findMembership(list).table} where "${side}" = ?`, [id])
}
