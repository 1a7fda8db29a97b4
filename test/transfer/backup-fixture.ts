// Makes backups in memory, and compares databases that must be equal.
import { Readable } from 'node:stream'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { writeBackup } from '../../src/service/backup/backup.js'
import { restoreBackup, type RestoredBackup } from '../../src/service/backup/restore.js'
import { VERSIONS_TABLE } from '../../src/store/auth/permissions-version.js'
import { releaseRestoredDatabase, type RestoreClaim } from '../../src/store/backup/restore-tables.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { RESTORE_ROW } from '../../src/store/schema/internal-tables.js'
import { models } from '../models.js'
import { newLocation, type DatabaseLocation, type Engine } from '../targets.js'

export const DATABASE_OPTIONS = { poolSize: 3, statementTimeoutMs: 60_000 }

export async function backupOf(db: Database): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  await writeBackup(db, {
    release: 'test',
    sink: (bytes) => {
      chunks.push(Uint8Array.from(bytes))
      return Promise.resolve()
    },
  })
  return Buffer.concat(chunks)
}

export function restoreInto(db: Database, backup: Buffer, catalog?: Catalog): Promise<RestoredBackup> {
  return restoreBackup(db, { source: Readable.from(slicesOf(backup)), catalog, isMoved: true })
}

/** Runs the last steps of a restore in a database that a service uses. */
export async function withClaim<T>(db: Database, work: (claim: RestoreClaim) => Promise<T>): Promise<T> {
  const claim = { token: 1 }
  await db.transaction((tx) =>
    tx.run(`insert into ${VERSIONS_TABLE} (name, value) values (?, ?)`, [RESTORE_ROW, claim.token]),
  )
  const result = await work(claim)
  await releaseRestoredDatabase(db, claim)
  return result
}

/** In slices that cut frames at odd places, like a pipe. */
function* slicesOf(bytes: Buffer): Generator<Buffer> {
  const slice = 65_521
  for (let start = 0; start < bytes.length; start += slice) yield bytes.subarray(start, start + slice)
}

/** Restores into a new database, and closes it. */
export async function restoredLocation(engine: Engine, backup: Buffer): Promise<DatabaseLocation> {
  const location = await newLocation(engine)
  const db = await openDatabase(location.url, DATABASE_OPTIONS)
  try {
    await restoreInto(db, backup, Catalog.from(models))
  } finally {
    await db.close()
  }
  return location
}

const TABLES_OF: Readonly<Record<Engine, string>> = {
  sqlite: `select type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, '') as "text" from sqlite_master
    where name not like 'sqlite_%' order by 1`,
  postgres: `select 'table ' || table_name || ' ' || column_name || ' ' || ordinal_position || ' ' || data_type || ' ' ||
      coalesce(collation_name, '') || ' ' || is_nullable || ' ' || is_identity as "text"
    from information_schema.columns where table_schema = 'public'
    union all select 'index ' || tablename || ' ' || indexdef from pg_indexes where schemaname = 'public' order by 1`,
}

/** Every table with its columns and indexes, as the engine describes it. */
export async function schemaOf(engine: Engine, { reader }: Database): Promise<string[]> {
  const rows = await reader.all(TABLES_OF[engine])
  return rows.map((row) => String(row['text']))
}
