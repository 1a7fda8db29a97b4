// Holds records, the rows of files and their content against each other: each must be there for the others.
import { createHash } from 'node:crypto'
import { briefly, causeOf } from '../../errors.js'
import { fileColumns } from '../schema/dropped-files.js'
import type { Database, Queryable } from '../engine/database.js'
import { FILE_TABLE, filesById, type StoredFile } from '../records/files.js'
import { quote, tableName } from '../engine/names.js'
import type { Shape } from '../schema/snapshot.js'

const FILES_AT_ONCE = 200

/** A column that holds files, of a model that may no longer be declared. */
export interface FileColumn {
  readonly model: string
  readonly column: string
}

export function fileColumnsIn(shapes: ReadonlyMap<string, Shape>): FileColumn[] {
  return [...fileColumns(shapes)].flatMap(([model, columns]) =>
    [...columns].map((column) => ({ model, column })),
  )
}

export interface FilePortion {
  readonly last: number | undefined
  readonly files: readonly StoredFile[]
  readonly faults: readonly string[]
}

/** The rows after this id, a portion of them: each must be held by one record. All of one snapshot. */
export async function compareHolders(
  db: Queryable,
  { dialect }: Pick<Database, 'dialect'>,
  columns: readonly FileColumn[],
  after: number,
): Promise<FilePortion> {
  const rows = await db.all(`select id from ${FILE_TABLE} where id > ? order by id limit ${FILES_AT_ONCE}`, [
    after,
  ])
  const ids = rows.map((row) => Number(row['id']))
  const holders = new Map<number, number>()
  for (const { model, column } of columns) {
    const name = quote(column)
    const held = await db.all(
      `select ${name} as "file" from ${quote(tableName(model))} where ${name} in (${dialect.json.rows('integer')})`,
      [JSON.stringify(ids)],
    )
    for (const row of held) holders.set(Number(row['file']), (holders.get(Number(row['file'])) ?? 0) + 1)
  }
  const faults = ids.flatMap((id) => {
    const count = holders.get(id) ?? 0
    if (count === 1) return []
    return [
      count === 0 ? `file ${id} has a row, and no record holds it` : `file ${id} is held by ${count} records`,
    ]
  })
  const files = [...(await filesById(db, dialect, ids)).values()]
  return { last: ids.at(-1), files, faults }
}

export interface HeldPortion {
  readonly last: number | undefined
  readonly faults: readonly string[]
}

/** The records after this id that hold a file without a row, a portion of them. */
export async function compareHeld(
  db: Queryable,
  { model, column }: FileColumn,
  after: number,
): Promise<HeldPortion> {
  const rows = await db.all(
    `select t."id" as "id", t.${quote(column)} as "file" from ${quote(tableName(model))} as t ` +
      `where t."id" > ? and t.${quote(column)} is not null and not exists ` +
      `(select 1 from ${FILE_TABLE} as f where f.id = t.${quote(column)}) order by t."id" limit ${FILES_AT_ONCE}`,
    [after],
  )
  const faults = rows.map(
    ({ id, file }) => `${model} ${id ?? ''} holds file ${file ?? ''} in ${column}, which has no row`,
  )
  const last = rows.at(-1)
  return { last: last && Number(last['id']), faults }
}

/** What is wrong with the content of a file; undefined if nothing is, or if it was removed meanwhile. */
export async function contentFault(db: Database, file: StoredFile): Promise<string | undefined> {
  const fault = await wrongContent(db, file)
  if (fault === undefined) return undefined
  const isStillThere = (await filesById(db.reader, db.dialect, [file.id])).has(file.id)
  return isStillThere ? `file ${file.id} (${file.name}) ${fault}` : undefined
}

async function wrongContent({ contents }: Database, file: StoredFile): Promise<string | undefined> {
  const digest = createHash('sha256')
  let size = 0
  try {
    const content = await contents.open(file)
    if (!content) return 'has no content'
    for await (const chunk of content) {
      digest.update(chunk as Buffer)
      size += (chunk as Buffer).length
    }
  } catch (error) {
    return `cannot be read: ${briefly(causeOf(error)).reason}`
  }
  if (size !== file.size) return `has ${size} bytes of content, and had ${file.size}`
  return digest.digest('hex') === file.sha256 ? undefined : 'has other content than was stored'
}
