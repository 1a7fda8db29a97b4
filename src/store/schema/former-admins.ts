// Migration of administrators: in earlier releases the users had an `admin` column, which roles replaced. The values of the column are kept until each
// user has a role.
import { USER_MODEL } from '../../model/definition/model.js'
import type { Queryable, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import type { SchemaSnapshot } from './snapshot.js'

export const FORMER_ADMIN_TABLE = 'verso_former_admin'
const ADMIN_COLUMN = 'admin'

/** Lists the column that the plan may drop because its values are saved in FORMER_ADMIN_TABLE. */
export function listFormerAdminColumns(
  snapshots: ReadonlyMap<string, Pick<SchemaSnapshot, 'columns'>>,
): string[] {
  const { columns = {} } = snapshots.get(USER_MODEL) ?? {}
  return Object.hasOwn(columns, ADMIN_COLUMN) ? [`${USER_MODEL}.${ADMIN_COLUMN}`] : []
}

/** Saves the values of the column, in the transaction that drops it. */
export async function saveFormerAdmins(tx: Transaction): Promise<void> {
  const users = quoteIdentifier(toTableName(USER_MODEL))
  await tx.run(
    `insert into ${FORMER_ADMIN_TABLE} (user_id, admin) ` +
      `select "id", case when ${quoteIdentifier(ADMIN_COLUMN)} then 1 else 0 end from ${users}`,
  )
}

export interface FormerAccount {
  readonly id: number
  readonly isAdmin: boolean
}

export async function listFormerAccounts(db: Queryable): Promise<FormerAccount[]> {
  const rows = await db.all(`select user_id, admin from ${FORMER_ADMIN_TABLE} order by user_id`)
  return rows.map((row) => ({ id: Number(row['user_id']), isAdmin: Number(row['admin']) === 1 }))
}

export async function deleteFormerAccount(tx: Transaction, id: number): Promise<void> {
  await tx.run(`delete from ${FORMER_ADMIN_TABLE} where user_id = ?`, [id])
}
