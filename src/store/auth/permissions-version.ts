// Two version numbers that invalidate caches on all nodes. The permissions version increases with every change of permissions: permissions
// that were computed under an older version are computed again. The revocation count increases when a session, a key or an account ends: a
// write whose session was looked up under an older count looks the session up again.
import type { Queryable, Transaction } from '../engine/database.js'

export const VERSIONS_TABLE = 'verso_epoch'
const PERMISSIONS_ROW = 'rights'
const REVOCATIONS_ROW = 'access ends'

/** A subselect, so that the statement that finds the session also reads the version. */
export const PERMISSIONS_VERSION_SQL = `(select value from ${VERSIONS_TABLE} where name = '${PERMISSIONS_ROW}')`

export const REVOCATION_COUNT_SQL = `(select value from ${VERSIONS_TABLE} where name = '${REVOCATIONS_ROW}')`

export async function readPermissionsVersion(db: Queryable): Promise<number> {
  const [row] = await db.all(`select ${PERMISSIONS_VERSION_SQL} as "epoch"`)
  return Number(row?.['epoch'] ?? 0)
}

export async function readRevocationCount(db: Queryable): Promise<number> {
  const [row] = await db.all(`select ${REVOCATION_COUNT_SQL} as "ends"`)
  return Number(row?.['ends'] ?? 0)
}

export async function incrementPermissionsVersion(tx: Transaction): Promise<void> {
  await incrementVersion(tx, PERMISSIONS_ROW)
}

/** Must run in the transaction that ends a session, a key or an account. All transactions lock this row last before the Log, which prevents deadlocks. */
export async function incrementRevocationCount(tx: Transaction): Promise<void> {
  await incrementVersion(tx, REVOCATIONS_ROW)
}

async function incrementVersion(tx: Transaction, name: string): Promise<void> {
  await tx.run(
    `insert into ${VERSIONS_TABLE} (name, value) values (?, 1) on conflict (name) do update set value = ${VERSIONS_TABLE}.value + 1`,
    [name],
  )
}
