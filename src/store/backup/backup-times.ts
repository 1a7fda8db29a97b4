// When the last scheduled backup was verified, for all nodes.
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import type { Queryable, Transaction } from '../engine/database.js'
import { SCHEDULE_TABLE } from '../hooks/leases.js'

/** The schedule of backups. Schedules of the application cannot have this name: it contains a space. */
export const BACKUP_SCHEDULE = 'verso backup'
const VERIFIED_ROW = 'backup verified'

export interface BackupStatus {
  /** Undefined before the first one. */
  readonly verifiedMs: number | undefined
  /** True if the last run failed. */
  readonly hasFailed: boolean
}

export async function readBackupStatus(db: Queryable): Promise<BackupStatus> {
  const [row] = await db.all(
    `select (select value from ${VERSIONS_TABLE} where name = ?) as "verified", ` +
      `(select count(*) from ${SCHEDULE_TABLE} where name = ? and error is not null) as "failed"`,
    [VERIFIED_ROW, BACKUP_SCHEDULE],
  )
  const verified = row?.['verified'] ?? null
  return {
    verifiedMs: verified === null ? undefined : Number(verified),
    hasFailed: Number(row?.['failed']) > 0,
  }
}

export async function storeVerifiedBackup(tx: Transaction, atMs: number): Promise<void> {
  await tx.run(
    `insert into ${VERSIONS_TABLE} (name, value) values ('${VERIFIED_ROW}', ?) on conflict (name) do update set value = excluded.value`,
    [atMs],
  )
}
