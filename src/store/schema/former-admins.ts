// Accounts once had a column that made administrators; now roles do. Who they were is kept until they have their roles.
import { USER_MODEL } from '../../model/definition/model.js'
import type { Queryable, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import type { SchemaSnapshot } from './snapshot.js'

export const FORMER_ADMIN_TABLE = 'verso_former_admin'
const ADMIN_COLUMN = 'admin'

/** What the plan may drop, since its values are kept elsewhere. */
export function listFormerAdminColumns(
  snapshots: ReadonlyMap<string, Pick<SchemaSnapshot, 'columns'>>,
): string[] {
  const { columns = {} } = snapshots.get(USER_MODEL) ?? {}
  return Object.hasOwn(columns, ADMIN_COLUMN) ? [`${USER_MODEL}.${ADMIN_COLUMN}`] : []
}

/** In the transaction that drops the column. */
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
