// Numbers that grow. One with every change of who may do what: rights that were worked out under an older one are worked out again.
// Another with every end of a session, a key or an account: a write whose sender was looked up under an older one looks the sender up again.
import type { Queryable, Transaction } from '../engine/database.js'

export const VERSIONS_TABLE = 'verso_epoch'
const PERMISSIONS_ROW = 'rights'
const REVOCATIONS_ROW = 'access ends'

/** To stand in a select, so that a request that looks up its session learns it by the way. */
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

/** In the transaction that ends a session, a key or an account. Its row is locked last before the Log, by everybody: no two wait for each other. */
export async function incrementRevocationCount(tx: Transaction): Promise<void> {
  await incrementVersion(tx, REVOCATIONS_ROW)
}

async function incrementVersion(tx: Transaction, name: string): Promise<void> {
  await tx.run(
    `insert into ${VERSIONS_TABLE} (name, value) values (?, 1) on conflict (name) do update set value = ${VERSIONS_TABLE}.value + 1`,
    [name],
  )
}
