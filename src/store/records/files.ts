// The files that records hold: what is known of each. Their content is in `Contents`.
import type { FileFacts } from '../../model/catalog/file-facts.js'
import type { Contents, Dialect, Located, Queryable, Row, Transaction } from '../engine/database.js'
import { quote } from '../engine/names.js'
import type { Table } from '../sql/table.js'

export const FILE_TABLE = 'verso_file'

export interface StoredFile extends FileFacts, Located {}

export async function insertFile(
  tx: Transaction,
  { name, type, size, sha256 }: FileFacts,
  key: string,
  nowMs: number,
): Promise<number> {
  return tx.insert(
    `insert into ${FILE_TABLE} (key, name, type, size, sha256, created_ms) values (?, ?, ?, ?, ?, ?)`,
    [key, name, type, size, sha256, nowMs],
  )
}

/** The row goes in this transaction, and with it the content, at once or after it. */
export async function removeFile(tx: Transaction, contents: Contents, file: Located): Promise<void> {
  await contents.drop(tx, file)
  await tx.run(`delete from ${FILE_TABLE} where id = ?`, [file.id])
}

/** The files of one record by field; undefined if there is no such record. */
export async function filesOf(
  db: Queryable,
  { name, binary }: Table,
  id: number,
): Promise<ReadonlyMap<string, StoredFile> | undefined> {
  if (binary.length === 0) return new Map()
  const columns = binary.map((field) => `t.${quote(field.name)}`).join(', ')
  const rows = await db.all(
    `select ${binary.map((field, index) => `t.${quote(field.name)} as "c${index}"`).join(', ')}, ${FACTS} ` +
      `from ${name} as t left join ${FILE_TABLE} as f on f.id in (${columns}) where t."id" = ?`,
    [id],
  )
  const [first] = rows
  if (!first) return undefined
  const byId = new Map(rows.map((row) => [row['id'], row]))
  const files = new Map<string, StoredFile>()
  binary.forEach((field, index) => {
    const row = byId.get(first[`c${index}`] ?? null)
    if (row && row['id'] !== null) files.set(field.name, toFile(row))
  })
  return files
}

/** Those of these that are there. A row never changes: what a record refers to is what it held at its version. */
export async function filesById(
  db: Queryable,
  dialect: Dialect,
  ids: readonly number[],
): Promise<ReadonlyMap<number, StoredFile>> {
  if (ids.length === 0) return new Map()
  const sql = `select ${FACTS} from ${FILE_TABLE} as f where f.id in (${dialect.json.rows('integer')})`
  const rows = await db.all(sql, [JSON.stringify(ids)])
  return new Map(rows.map((row) => [Number(row['id']), toFile(row)]))
}

/** All files of a column that is about to be dropped. */
export async function filesIn(db: Queryable, table: string, column: string): Promise<StoredFile[]> {
  const rows = await db.all(
    `select ${FACTS} from ${FILE_TABLE} as f where f.id in (select ${quote(column)} from ${table})`,
  )
  return rows.map(toFile)
}

export async function isKnown(db: Queryable, key: string): Promise<boolean> {
  return (await db.all(`select id from ${FILE_TABLE} where key = ?`, [key])).length > 0
}

const FACTS =
  'f.id as "id", f.key as "key", f.name as "name", f.type as "type", f.size as "size", f.sha256 as "sha256"'

function toFile(row: Row): StoredFile {
  return {
    ...{ id: Number(row['id']), key: String(row['key']) },
    ...{ name: String(row['name']), type: String(row['type']) },
    ...{ size: Number(row['size']), sha256: String(row['sha256']) },
  }
}
