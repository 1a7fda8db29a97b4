// The last step of a restore into an empty database, before its first client.
import { requireClaim, type RestoreClaim } from '../../store/backup/restore-tables.js'
import { LONG_TRANSACTION } from '../../store/engine/database.js'
import {
  computeRestoreJump,
  raiseNextIds,
  raiseNextSeq,
  raiseVersions,
  type RestoreJump,
} from '../../store/log/restored-numbers.js'
import { readSnapshotTexts } from '../../store/schema/stored-snapshots.js'
import { appendEvent } from '../auth/events.js'
import type { App } from '../context/app.js'

/**
 * Raises all versions, ids and sequence numbers, so that none that a client holds from before the restore matches other content: it gets
 * 404, 409, 410 or 412. Not needed if no client can have seen a later state, because the source was stopped before the backup.
 *
 * `note` says in the audit event which backup was restored. The Change of that event makes the last sequence number a valid cursor.
 */
export async function raiseRestoredNumbers(
  app: Pick<App, 'catalog' | 'db' | 'tables' | 'clock'>,
  claim: RestoreClaim,
  note: string,
): Promise<RestoreJump> {
  const { dialect } = app.db
  return app.db.transaction(async (tx) => {
    for (const lock of dialect.lockSchema) await tx.run(lock)
    await requireClaim(tx, claim)
    // Models that the catalog does not declare have records, too.
    const models = [...(await readSnapshotTexts(tx)).keys()]
    const jump = await computeRestoreJump(tx, app.clock.now())
    await raiseVersions(tx, models, jump)
    await raiseNextIds(tx, dialect, models, jump)
    await raiseNextSeq(tx, dialect, jump)
    await appendEvent(app, tx, { kind: 'database-restored', note })
    return jump
  }, LONG_TRANSACTION)
}
