// A random number that identifies a database and its backups. A restored database has the id of its backup.
import { randomInt } from 'node:crypto'
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import type { Queryable, Transaction } from '../engine/database.js'

const ROW = 'database'
/** MAX_SAFE_INTEGER is too large for `randomInt`. */
const MAX_ID = 2 ** 47

/** Undefined if a backup without an id was restored. */
export async function readDatabaseId(db: Queryable): Promise<number | undefined> {
  const [row] = await db.all(`select value from ${VERSIONS_TABLE} where name = ?`, [ROW])
  return row && Number(row['value'])
}

export async function ensureDatabaseId(tx: Transaction): Promise<void> {
  await tx.run(`insert into ${VERSIONS_TABLE} (name, value) values (?, ?) on conflict (name) do nothing`, [
    ROW,
    randomInt(MAX_ID),
  ])
}

/** Must be called before a restore inserts the rows of a backup, which have its id. */
export async function removeDatabaseId(tx: Transaction): Promise<void> {
  await tx.run(`delete from ${VERSIONS_TABLE} where name = ?`, [ROW])
}
