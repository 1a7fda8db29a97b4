// Rows that describe the files of records. The content of a file is in the BlobStore.
import type { FileMetadata } from '../../model/catalog/file-metadata.js'
import type { BlobStore, Dialect, BlobLocation, Queryable, Row, Transaction } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import type { Table } from '../sql/table.js'

export const FILE_TABLE = 'verso_file'

export interface StoredFile extends FileMetadata, BlobLocation {}

export async function insertFile(
  tx: Transaction,
  { name, type, size, sha256 }: FileMetadata,
  key: string,
  nowMs: number,
): Promise<number> {
  return tx.insert(
    `insert into ${FILE_TABLE} (key, name, type, size, sha256, created_ms) values (?, ?, ?, ?, ?, ?)`,
    [key, name, type, size, sha256, nowMs],
  )
}

/** Deletes the row in this transaction. The BlobStore deletes the content in the transaction or after its commit. */
export async function removeFile(tx: Transaction, blobs: BlobStore, file: BlobLocation): Promise<void> {
  await blobs.drop(tx, file)
  await tx.run(`delete from ${FILE_TABLE} where id = ?`, [file.id])
}

/** Finds the files of one record, by field; undefined if the record does not exist. */
export async function findRecordFiles(
  db: Queryable,
  { name, fileFields }: Table,
  id: number,
): Promise<ReadonlyMap<string, StoredFile> | undefined> {
  if (fileFields.length === 0) return new Map()
  const columns = fileFields.map((field) => `t.${quoteIdentifier(field.name)}`).join(', ')
  const rows = await db.all(
    `select ${fileFields.map((field, index) => `t.${quoteIdentifier(field.name)} as "c${index}"`).join(', ')}, ${FILE_COLUMNS} ` +
      `from ${name} as t left join ${FILE_TABLE} as f on f.id in (${columns}) where t."id" = ?`,
    [id],
  )
  const [first] = rows
  if (!first) return undefined
  const byId = new Map(rows.map((row) => [row['id'], row]))
  const files = new Map<string, StoredFile>()
  fileFields.forEach((field, index) => {
    const row = byId.get(first[`c${index}`] ?? null)
    if (row && row['id'] !== null) files.set(field.name, toStoredFile(row))
  })
  return files
}

/** Finds the existing files among `ids`. Rows are immutable, so a file id in an old version of a record still means the same file. */
export async function findFilesById(
  db: Queryable,
  dialect: Dialect,
  ids: readonly number[],
): Promise<ReadonlyMap<number, StoredFile>> {
  if (ids.length === 0) return new Map()
  const sql = `select ${FILE_COLUMNS} from ${FILE_TABLE} as f where f.id in (${dialect.json.unnest('integer')})`
  const rows = await db.all(sql, [JSON.stringify(ids)])
  return new Map(rows.map((row) => [Number(row['id']), toStoredFile(row)]))
}

/** Finds all files of a column, before the column is dropped. */
export async function findFilesInColumn(db: Queryable, table: string, column: string): Promise<StoredFile[]> {
  const rows = await db.all(
    `select ${FILE_COLUMNS} from ${FILE_TABLE} as f where f.id in (select ${quoteIdentifier(column)} from ${table})`,
  )
  return rows.map(toStoredFile)
}

export async function hasFileKey(db: Queryable, key: string): Promise<boolean> {
  return (await db.all(`select id from ${FILE_TABLE} where key = ?`, [key])).length > 0
}

const FILE_COLUMNS =
  'f.id as "id", f.key as "key", f.name as "name", f.type as "type", f.size as "size", f.sha256 as "sha256"'

function toStoredFile(row: Row): StoredFile {
  return {
    id: Number(row['id']),
    key: String(row['key']),
    name: String(row['name']),
    type: String(row['type']),
    size: Number(row['size']),
    sha256: String(row['sha256']),
  }
}
