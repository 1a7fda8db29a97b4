// Databases whose backups are wrong, and programs that accept wrong backups.
import type { Database } from '../../src/store/engine/database.js'
import type { Mistake } from './program.js'
import { faceOf } from './records.js'

/** Each statement of a backup reads what is committed by then. */
export function withoutSnapshot(db: Database): Database {
  const { queryPool } = db
  return {
    ...faceOf(db),
    queryPool: {
      all: (sql, params) => queryPool.all(sql, params),
      allShared: (sql, params) => queryPool.allShared(sql, params),
      batch: (work, input) => queryPool.batch(work, input),
      readInSnapshot: (work, otherwise) => queryPool.readInSnapshot(work, otherwise),
      snapshot: (work) => queryPool.snapshot(work),
      longSnapshot: (work) => work(queryPool),
    },
  }
}

/** Dropped content is removed at once, also beside a backup. */
export function withoutRetention(db: Database): Database {
  const { blobs } = db
  return {
    ...faceOf(db),
    blobs: {
      receive: (source, limitBytes) => blobs.receive(source, limitBytes),
      store: (tx, id, pending) => blobs.store(tx, id, pending),
      finish: (pending) => blobs.finish(pending),
      drop: (tx, file) => blobs.drop(tx, file),
      collect: () => blobs.collect(),
      open: (file, range) => blobs.open(file, range),
      openInSnapshot: (snapshot, file) => blobs.openInSnapshot(snapshot, file),
      retainDropped: () => Promise.resolve(() => undefined),
      recover: (abandonedAfterMs) => blobs.recover(abandonedAfterMs),
      countPending: () => blobs.countPending(),
      findOrphans: () => blobs.findOrphans(),
      close: () => blobs.close(),
    },
  }
}

/** A program that does not compare the checksum of a backup. */
export const WITHOUT_CHECKSUM: Mistake = {
  file: 'service/backup/backup-format.js',
  from: 'payload.equals(expected.digest())',
  to: 'true',
}

/** A program that uses a database into which a restore did not finish. */
export const BLIND_TO_RESTORES: Mistake = {
  file: 'store/schema/internal-tables.js',
  from: 'if (rows.has(RESTORE_ROW))',
  to: 'if (rows.has(""))',
}

/** A program that writes into a database that another restore has taken over. */
export const WITHOUT_CLAIM: Mistake = {
  file: 'store/backup/restore-tables.js',
  from: "if (Number(row?.['value']) !== token)",
  to: 'if (false)',
}

/** A program whose backups have their name before they are complete. */
export const WITHOUT_PART: Mistake = {
  file: 'service/backup/backup-file.js',
  from: '`${file}.part`',
  to: 'file',
}
