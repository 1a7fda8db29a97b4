// Records, rows and content of files, held against each other: each is there for the others, and nothing else is.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { META_FILE } from '../src/model/catalog/system-models.js'
import type { Database } from '../src/store/engine/database.js'
import { FILE_TABLE } from '../src/store/records/files.js'

/** The binary fields of the fixture models. */
const COLUMNS = [
  ['doc.Folder', 'cover'],
  ['doc.Paper', 'scan'],
  ['doc.Paper', 'photo'],
  [META_FILE.name, 'content'],
] as const

export interface Audit {
  /** How many files records hold. */
  readonly held: number
  readonly violations: readonly string[]
}

/** Nothing may be under way. */
export async function auditFiles(db: Database, url: string): Promise<Audit> {
  const violations: string[] = []
  const held = new Set<number>()
  for (const [model, field] of COLUMNS) {
    const rows = await db.reader.all(
      `select "id", "${field}" as "file" from "${model}" where "${field}" is not null`,
    )
    for (const { id, file } of rows) {
      if (held.has(Number(file))) violations.push(`file ${file ?? ''} is held twice`)
      held.add(Number(file))
      violations.push(...(await contentFaults(db, `${model} ${id ?? ''} ${field}`, Number(file))))
    }
  }
  const rows = await db.reader.all(`select id, key from ${FILE_TABLE}`)
  for (const { id } of rows) {
    if (!held.has(Number(id))) violations.push(`file ${id ?? ''} has a row, and no record holds it`)
  }
  const folder = filesFolder(url)
  if (folder === undefined) return { held: held.size, violations }
  const known = new Set(rows.map(({ key }) => String(key)))
  for (const file of blobFilesIn(folder)) {
    if (!known.has(path.basename(file))) violations.push(`${file} is there, and has no row`)
    if (file.startsWith('incoming')) violations.push(`${file} has not moved in`)
  }
  const gone = await db.reader.all('select key from verso_file_gone')
  for (const { key } of gone) violations.push(`${key ?? ''} was to be removed`)
  return { held: held.size, violations }
}

async function contentFaults(db: Database, holder: string, id: number): Promise<string[]> {
  const [row] = await db.reader.all(`select key, size, sha256 from ${FILE_TABLE} where id = ?`, [id])
  if (!row) return [`${holder} holds file ${id}, which has no row`]
  const content = await db.blobs.open({ id, key: String(row['key']), size: Number(row['size']) })
  if (!content) return [`${holder} holds file ${id}, which has no content`]
  const digest = createHash('sha256')
  for await (const chunk of content) digest.update(chunk as Buffer)
  return digest.digest('hex') === row['sha256']
    ? []
    : [`${holder} holds file ${id}, whose content is another`]
}

/** Undefined where content lies in the database. */
export function filesFolder(url: string): string | undefined {
  return url.startsWith('sqlite:') ? `${url.slice('sqlite:'.length)}.files` : undefined
}

/** Every file in the folder, by its path inside of it. */
export function blobFilesIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
}
