// A number that grows with every change of who may do what: what was worked out under an older one is worked out again.
import type { Queryable, Transaction } from './database.js'

export const EPOCH_TABLE = 'verso_epoch'
const RIGHTS = 'rights'

/** To stand in a select, so that a request that looks up its session learns it by the way. */
export const RIGHTS_EPOCH = `(select value from ${EPOCH_TABLE} where name = '${RIGHTS}')`

export async function rightsEpoch(db: Queryable): Promise<number> {
  const [row] = await db.all(`select ${RIGHTS_EPOCH} as "epoch"`)
  return Number(row?.['epoch'] ?? 0)
}

export async function raiseRightsEpoch(tx: Transaction): Promise<void> {
  await tx.run(
    `insert into ${EPOCH_TABLE} (name, value) values ('${RIGHTS}', 1) on conflict (name) do update set value = ${EPOCH_TABLE}.value + 1`,
  )
}
