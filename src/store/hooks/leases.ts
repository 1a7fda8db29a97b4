// Leases in the database: rows that one node at a time may work on. A node has one token for all its leases of a table.
import type { Dialect, Queryable, Row, Transaction } from '../engine/database.js'

export const HOOK_TABLE = 'verso_hook'
export const SCHEDULE_TABLE = 'verso_schedule'

/** A table whose rows have a `name`, a `lease` and its end. */
export type LeasedTable = typeof HOOK_TABLE | typeof SCHEDULE_TABLE

/** The lease that a node has, or wants, of one row. */
export interface NamedLease {
  readonly table: LeasedTable
  readonly name: string
  /** A random text that identifies the node. */
  readonly token: string
}

/** Matches a row that no node has leased; takes the time. */
const IS_FREE = '(lease is null or leased_until_ms <= ?)'

/** Takes a lease that is free or has expired. Returns false if another node has it. */
export async function takeNamedLease(
  tx: Transaction,
  { table, name, token }: NamedLease,
  { nowMs, untilMs }: { readonly nowMs: number; readonly untilMs: number },
): Promise<boolean> {
  const rows = await tx.run(
    `update ${table} set lease = ?, leased_until_ms = ? where name = ? and ${IS_FREE}`,
    [token, untilMs, name, nowMs],
  )
  return rows === 1
}

/**
 * Extends these leases, unless another node has taken them. Returns the names of those that are extended. A lease that nobody works under is
 * never among the names, so it expires.
 */
export async function renewLeases(
  tx: Transaction,
  { json }: Dialect,
  { table, token }: Omit<NamedLease, 'name'>,
  { names, untilMs }: { readonly names: readonly string[]; readonly untilMs: number },
): Promise<Set<string>> {
  const isOurs = `lease = ? and name in (${json.unnest('text')})`
  const params = [token, JSON.stringify(names)]
  await tx.run(`update ${table} set leased_until_ms = ? where ${isOurs}`, [untilMs, ...params])
  return toNameSet(await tx.all(`select name from ${table} where ${isOurs}`, params))
}

/** Returns true if the node still has the lease, and keeps others from taking it until the transaction ends. */
export async function lockLease(
  tx: Transaction,
  { lockForUpdate }: Dialect,
  { table, name, token }: NamedLease,
): Promise<boolean> {
  const rows = await tx.all(`select name from ${table} where name = ? and lease = ?${lockForUpdate}`, [
    name,
    token,
  ])
  return rows.length === 1
}

/** Releases all leases of the node. */
export async function releaseLeases(tx: Transaction, table: LeasedTable, token: string): Promise<void> {
  await tx.run(`update ${table} set lease = null where lease = ?`, [token])
}

/** Lists the names of all rows, of programs that run now and of earlier ones. */
export async function listRegisteredNames(db: Queryable, table: LeasedTable): Promise<Set<string>> {
  return toNameSet(await db.all(`select name from ${table}`))
}

function toNameSet(rows: readonly Row[]): Set<string> {
  return new Set(rows.map((row) => String(row['name'])))
}
