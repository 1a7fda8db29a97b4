// The tables of a restore. While a restore runs, and after it was interrupted, a row in the database makes every other program refuse it.
import { ConfigError } from '../../errors.js'
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import { COUNT_TABLE, parseCounters, VALUE_COUNT_TABLE } from '../counters/counted-fields.js'
import { rebuildModelCounters } from '../counters/rebuild.js'
import { LONG_TRANSACTION, type Database, type Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { FILE_TABLE, findFilesById, removeFile } from '../records/files.js'
import {
  createInternalTables,
  defineInternalTables,
  hasInternalTables,
  readDatabaseRows,
  RESTORE_ROW,
} from '../schema/internal-tables.js'
import { removeDatabaseId } from '../schema/database-id.js'
import type { SchemaSnapshot } from '../schema/snapshot.js'
import { createIndex, createLinkTable, createModelTable } from '../schema/steps.js'
import { parseSnapshots, readSnapshotTexts, saveSnapshot } from '../schema/stored-snapshots.js'
import { toLinkTableName } from '../sql/relation.js'
import type { BackupColumn, BackupTable } from './backup-tables.js'

export const RESTORE_FAILED = 'The backup cannot be restored'
/** PostgreSQL holds a lock for each table until the transaction ends, and its lock table has a few thousand entries. */
const MODELS_PER_TRANSACTION = 50
const FILES_PER_TRANSACTION = 500
const MAX_LISTED_TABLES = 5

/** The right of one restore to write into a database. */
export interface RestoreClaim {
  /** A random number that identifies the restore. */
  readonly token: number
}

/** Creates the internal tables in an empty database and claims it. Empties it first if an earlier restore did not finish. */
export async function claimEmptyDatabase(db: Database, claim: RestoreClaim): Promise<void> {
  const { token } = claim
  await requireEmptyDatabase(db)
  if (await hasInternalTables(db)) {
    await db.transaction((tx) =>
      tx.run(`update ${VERSIONS_TABLE} set value = ? where name = ?`, [token, RESTORE_ROW]),
    )
    await dropRestoredTables(db, claim)
  }
  await db.transaction(async (tx) => {
    for (const lock of db.dialect.lockSchema) await tx.run(lock)
    // A service or another restore may have started in between.
    if (await hasTables(tx, db)) throw createNotEmptyError('another process has created tables meanwhile')
    await createInternalTables(tx, db.dialect)
    await removeDatabaseId(tx)
    await tx.run(`insert into ${VERSIONS_TABLE} (name, value) values (?, ?)`, [RESTORE_ROW, token])
  }, LONG_TRANSACTION)
}

/** Accepts a database without tables, and one into which a restore did not finish. */
export async function requireEmptyDatabase(db: Database): Promise<void> {
  if (await hasInternalTables(db)) {
    const rows = await readDatabaseRows(db.reader, db.dialect)
    if (!rows.has(RESTORE_ROW)) throw createNotEmptyError('it has tables of Verso')
    return
  }
  const names = (await db.reader.all(db.dialect.listTables)).map(({ name }) => String(name))
  if (names.length > 0) {
    const some = names.slice(0, MAX_LISTED_TABLES).join(', ')
    throw createNotEmptyError(
      `it has tables of another program: ${some}${names.length > MAX_LISTED_TABLES ? ', …' : ''}`,
    )
  }
}

function createNotEmptyError(reason: string): ConfigError {
  return new ConfigError(RESTORE_FAILED, [
    `the database is not empty: ${reason}. A restore replaces nothing. Name a new SQLite file or an empty PostgreSQL database with --db; nothing was changed`,
  ])
}

async function hasTables(tx: Transaction, { dialect }: Database): Promise<boolean> {
  return (await tx.all(dialect.findColumn, [VERSIONS_TABLE, 'value'])).length > 0
}

/** Must be called in every transaction of a restore: another restore may have started, and have dropped the tables of this one. */
export async function requireClaim(tx: Transaction, { token }: RestoreClaim): Promise<void> {
  const [row] = await tx.all(`select value from ${VERSIONS_TABLE} where name = ?`, [RESTORE_ROW])
  if (Number(row?.['value']) !== token)
    throw new ConfigError(RESTORE_FAILED, [
      'another restore into this database has started meanwhile: wait for it, or use another database',
    ])
}

/** Drops all tables of unfinished restores. Drops the internal tables last, so that every program refuses the database after a crash. */
export async function dropRestoredTables(db: Database, claim: RestoreClaim): Promise<void> {
  await removeRestoredFiles(db, claim)
  const snapshots = [...parseSnapshots(await readSnapshotTexts(db.reader))]
  for (let next = 0; next < snapshots.length; next += MODELS_PER_TRANSACTION) {
    const dropped = snapshots.slice(next, next + MODELS_PER_TRANSACTION)
    await db.transaction(async (tx) => {
      await requireClaim(tx, claim)
      for (const [model, { links = {} }] of dropped) {
        for (const field of Object.keys(links)) await dropTable(tx, toLinkTableName(model, field))
        await dropTable(tx, toTableName(model))
        await tx.run('delete from verso_schema where model = ?', [model])
      }
    }, LONG_TRANSACTION)
  }
  await db.transaction(async (tx) => {
    await requireClaim(tx, claim)
    const contentTables = Object.keys(db.dialect.blobTables)
    const internal = Object.keys(defineInternalTables(db.dialect))
    for (const name of [...contentTables, COUNT_TABLE, VALUE_COUNT_TABLE, ...internal])
      await dropTable(tx, name)
  }, LONG_TRANSACTION)
}

async function removeRestoredFiles(db: Database, claim: RestoreClaim): Promise<void> {
  const { dialect, blobs } = db
  // Content that a killed restore has received is finished or removed.
  await blobs.recover()
  for (;;) {
    const removed = await db.transaction(async (tx) => {
      await requireClaim(tx, claim)
      const rows = await tx.all(`select id from ${FILE_TABLE} limit ${FILES_PER_TRANSACTION}`)
      const ids = rows.map((row) => Number(row['id']))
      for (const file of (await findFilesById(tx, dialect, ids)).values()) await removeFile(tx, blobs, file)
      return ids.length
    })
    await blobs.collect()
    if (removed === 0) return
  }
}

async function dropTable(tx: Transaction, name: string): Promise<void> {
  await tx.run(`drop table if exists ${quoteIdentifier(name)}`)
}

/** Creates the tables of all models without their indexes, which are faster to create after the rows. */
export async function createRestoredTables(
  db: Database,
  claim: RestoreClaim,
  texts: ReadonlyMap<string, string>,
  tables: ReadonlyMap<string, BackupTable>,
): Promise<void> {
  const snapshots = [...parseSnapshots(texts)]
  for (let next = 0; next < snapshots.length; next += MODELS_PER_TRANSACTION) {
    const created = snapshots.slice(next, next + MODELS_PER_TRANSACTION)
    await db.transaction(async (tx) => {
      await requireClaim(tx, claim)
      for (const [model, { links = {} }] of created) {
        const columns = tables.get(toTableName(model))?.columns ?? []
        await createModelTable(tx, db.dialect, model, columns.filter(isFieldColumn))
        for (const field of Object.keys(links))
          await createLinkTable(tx, db.dialect, toLinkTableName(model, field))
        await saveSnapshot(tx, model, texts.get(model) ?? '')
      }
    }, LONG_TRANSACTION)
  }
}

function isFieldColumn({ name }: BackupColumn): boolean {
  return name !== 'id' && name !== 'version'
}

/** Creates the indexes of a model and rebuilds its counters. */
export async function completeRestoredTable(
  db: Database,
  claim: RestoreClaim,
  model: string,
  { indexes, counted }: SchemaSnapshot,
): Promise<void> {
  await db.transaction(async (tx) => {
    await requireClaim(tx, claim)
    for (const [name, index] of Object.entries(indexes))
      await createIndex(tx, db.dialect, { model, name, ...index })
    if (counted) await rebuildModelCounters(tx, db.dialect, parseCounters(model, counted))
  }, LONG_TRANSACTION)
}

/** Makes the engine generate ids after these, by table. */
export async function advanceRestoredIds(
  db: Database,
  claim: RestoreClaim,
  lastIds: readonly (readonly [table: BackupTable, lastId: number])[],
): Promise<void> {
  for (let next = 0; next < lastIds.length; next += MODELS_PER_TRANSACTION) {
    await db.transaction(async (tx) => {
      await requireClaim(tx, claim)
      for (const [{ name, identity }, lastId] of lastIds.slice(next, next + MODELS_PER_TRANSACTION)) {
        if (identity === undefined || lastId === 0) continue
        for (const sql of db.dialect.advanceIds(name, lastId, identity)) await tx.run(sql)
      }
    }, LONG_TRANSACTION)
  }
}

/** Prepares the engine for reads of the new rows. Without it the checks of a million records take an hour on PostgreSQL. */
export async function prepareRestoredReads(db: Database, claim: RestoreClaim): Promise<void> {
  await db.transaction(async (tx) => {
    await requireClaim(tx, claim)
    for (const sql of db.dialect.afterLoad) await tx.run(sql)
  }, LONG_TRANSACTION)
}

/** The last step of a restore: from here on every program accepts the database. */
export async function releaseRestoredDatabase(db: Database, claim: RestoreClaim): Promise<void> {
  await db.transaction(async (tx) => {
    const sql = `delete from ${VERSIONS_TABLE} where name = ? and value = ?`
    // In one statement: another restore may take the claim at any time, and this one must not remove it.
    if ((await tx.run(sql, [RESTORE_ROW, claim.token])) === 0) await requireClaim(tx, claim)
  })
}
