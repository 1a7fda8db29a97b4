// Compares records, file rows and file contents: every file needs all three.
import { createHash } from 'node:crypto'
import { summarizeError, unwrapLoggedCause } from '../../errors.js'
import { findFileColumns } from '../schema/dropped-files.js'
import type { Database, Queryable } from '../engine/database.js'
import { FILE_TABLE, findFilesById, type StoredFile } from '../records/files.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import type { SchemaSnapshot } from '../schema/snapshot.js'

const FILE_CHECK_BATCH_ROWS = 200

/** A column that contains files. Its model may no longer be declared. */
export interface FileColumn {
  readonly model: string
  readonly column: string
}

export function listFileColumns(snapshots: ReadonlyMap<string, SchemaSnapshot>): FileColumn[] {
  return [...findFileColumns(snapshots)].flatMap(([model, columns]) =>
    [...columns].map((column) => ({ model, column })),
  )
}

export interface FileCheckBatch {
  readonly lastId: number | undefined
  readonly files: readonly StoredFile[]
  readonly errors: readonly string[]
}

/** Checks a batch of file rows after the id `after`. Exactly one record must refer to each. Everything must be read from one snapshot. */
export async function checkFileRows(
  db: Queryable,
  { dialect }: Pick<Database, 'dialect'>,
  columns: readonly FileColumn[],
  after: number,
): Promise<FileCheckBatch> {
  const rows = await db.all(
    `select id from ${FILE_TABLE} where id > ? order by id limit ${FILE_CHECK_BATCH_ROWS}`,
    [after],
  )
  const ids = rows.map((row) => Number(row['id']))
  const holderCounts = new Map<number, number>()
  for (const { model, column } of columns) {
    const name = quoteIdentifier(column)
    const references = await db.all(
      `select ${name} as "file" from ${quoteIdentifier(toTableName(model))} where ${name} in (${dialect.json.unnest('integer')})`,
      [JSON.stringify(ids)],
    )
    for (const row of references) {
      const file = Number(row['file'])
      holderCounts.set(file, (holderCounts.get(file) ?? 0) + 1)
    }
  }
  const errors = ids.flatMap((id) => {
    const count = holderCounts.get(id) ?? 0
    if (count === 1) return []
    return [
      count === 0
        ? `file ${id} has a row, but no record refers to it`
        : `${count} records refer to file ${id}`,
    ]
  })
  const files = [...(await findFilesById(db, dialect, ids)).values()]
  return { lastId: ids.at(-1), files, errors }
}

export interface FileReferenceCheckBatch {
  readonly lastId: number | undefined
  readonly errors: readonly string[]
}

/** Finds a batch of records after the id `after` that refer to a file without a row. */
export async function checkFileReferences(
  db: Queryable,
  { model, column }: FileColumn,
  after: number,
): Promise<FileReferenceCheckBatch> {
  const rows = await db.all(
    `select t."id" as "id", t.${quoteIdentifier(column)} as "file" from ${quoteIdentifier(toTableName(model))} as t ` +
      `where t."id" > ? and t.${quoteIdentifier(column)} is not null and not exists ` +
      `(select 1 from ${FILE_TABLE} as f where f.id = t.${quoteIdentifier(column)}) order by t."id" limit ${FILE_CHECK_BATCH_ROWS}`,
    [after],
  )
  const errors = rows.map(
    ({ id, file }) => `${model} ${id ?? ''} refers to file ${file ?? ''} in ${column}, which has no row`,
  )
  const last = rows.at(-1)
  return { lastId: last && Number(last['id']), errors }
}

/** Checks the content of a file. Returns a description of the error; undefined if there is none or if the file was removed meanwhile. */
export async function checkFileContent(db: Database, file: StoredFile): Promise<string | undefined> {
  const error = await findContentError(db, file)
  if (error === undefined) return undefined
  const isStillThere = (await findFilesById(db.reader, db.dialect, [file.id])).has(file.id)
  return isStillThere ? `file ${file.id} (${file.name}) ${error}` : undefined
}

async function findContentError({ blobs }: Database, file: StoredFile): Promise<string | undefined> {
  const digest = createHash('sha256')
  let size = 0
  try {
    const content = await blobs.open(file)
    if (!content) return 'has no content'
    for await (const chunk of content) {
      digest.update(chunk as Buffer)
      size += (chunk as Buffer).length
    }
  } catch (error) {
    return `cannot be read: ${summarizeError(unwrapLoggedCause(error)).reason}`
  }
  if (size !== file.size) return `has ${size} bytes of content instead of ${file.size}`
  return digest.digest('hex') === file.sha256 ? undefined : 'has different content than was stored'
}
