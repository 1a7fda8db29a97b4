// Numbers that grow. One with every change of who may do what: rights that were worked out under an older one are worked out again.
// Another with every end of a session, a key or an account: a write whose sender was looked up under an older one looks the sender up again.
import type { Queryable, Transaction } from '../engine/database.js'

export const EPOCH_TABLE = 'verso_epoch'
const RIGHTS = 'rights'
const ACCESS_END = 'access ends'

/** To stand in a select, so that a request that looks up its session learns it by the way. */
export const RIGHTS_EPOCH = `(select value from ${EPOCH_TABLE} where name = '${RIGHTS}')`

export const ACCESS_ENDS = `(select value from ${EPOCH_TABLE} where name = '${ACCESS_END}')`

export async function rightsEpoch(db: Queryable): Promise<number> {
  const [row] = await db.all(`select ${RIGHTS_EPOCH} as "epoch"`)
  return Number(row?.['epoch'] ?? 0)
}

export async function accessEnds(db: Queryable): Promise<number> {
  const [row] = await db.all(`select ${ACCESS_ENDS} as "ends"`)
  return Number(row?.['ends'] ?? 0)
}

export async function raiseRightsEpoch(tx: Transaction): Promise<void> {
  await raise(tx, RIGHTS)
}

/** In the transaction that ends a session, a key or an account. Its row is locked last before the Log, by everybody: no two wait for each other. */
export async function raiseAccessEnds(tx: Transaction): Promise<void> {
  await raise(tx, ACCESS_END)
}

async function raise(tx: Transaction, name: string): Promise<void> {
  await tx.run(
    `insert into ${EPOCH_TABLE} (name, value) values (?, 1) on conflict (name) do update set value = ${EPOCH_TABLE}.value + 1`,
    [name],
  )
}
