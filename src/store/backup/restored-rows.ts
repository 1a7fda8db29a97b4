// Inserts the rows of a backup, and the rows and contents of its files.
import { LONG_TRANSACTION, type Database, type PendingBlob, type SqlValue } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import { FILE_TABLE } from '../records/files.js'
import type { Value } from '../../model/values/value.js'
import type { BackupTable } from './backup-tables.js'
import { requireClaim, type RestoreClaim } from './restore-tables.js'

/** A row of a backup: its values in the order of the columns, as `JSON.parse` returns them. */
export type BackupRow = readonly Value[]

/** Parses JSON arrays that are separated by commas. */
export function parseBackupRows(text: string): BackupRow[] {
  return JSON.parse(`[${text}]`) as BackupRow[]
}

export async function insertBackupRows(
  db: Database,
  claim: RestoreClaim,
  { name, columns }: BackupTable,
  rows: readonly BackupRow[],
): Promise<void> {
  const encoders = columns.map(({ storage }) =>
    // Both engines store JSON as its text.
    storage === 'json' ? (value: Value) => value as SqlValue : db.dialect.columns[storage].encode,
  )
  const encoded = rows.map((row) => encoders.map((encode, index) => encode(row[index] ?? null)))
  const insert = db.dialect.createBulkInsert({ table: quoteIdentifier(name), columns })
  await db.transaction(async (tx) => {
    await requireClaim(tx, claim)
    await insert.run(tx, encoded)
  }, LONG_TRANSACTION)
}

export interface RestoredFile {
  readonly row: BackupRow
  readonly pending: PendingBlob
}

/** Inserts the rows of files whose content was received. */
export async function insertBackupFiles(
  db: Database,
  claim: RestoreClaim,
  { columns }: BackupTable,
  files: readonly RestoredFile[],
): Promise<void> {
  const names = columns.map(({ name }) => name)
  const idIndex = names.indexOf('id')
  const marks = columns.map(() => ', ?').join('')
  try {
    await db.transaction(async (tx) => {
      await requireClaim(tx, claim)
      for (const { row, pending } of files) {
        await tx.run(
          `insert into ${FILE_TABLE} (key, ${names.map(quoteIdentifier).join(', ')}) values (?${marks})`,
          [pending.key, ...(row as readonly SqlValue[])],
        )
        await db.blobs.store(tx, Number(row[idIndex]), pending)
      }
    }, LONG_TRANSACTION)
  } finally {
    for (const { pending } of files) await db.blobs.finish(pending)
  }
}
