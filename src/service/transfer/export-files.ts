// The files of records that are exported: each record comes with what its files are, after their contents were kept.
import type { Readable } from 'node:stream'
import { ConfigError } from '../../errors.js'
import { pickFileMetadata, type FileMetadata } from '../../model/catalog/file-facts.js'
import type { Selection } from '../../model/query/selection.js'
import type { Queryable } from '../../store/engine/database.js'
import { findFilesById, type StoredFile } from '../../store/records/files.js'
import { read } from '../../store/records/records.js'
import { compileSelection, type Select } from '../../store/sql/select.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'

/** What it takes to read: a command that only looks has no more. */
export type ExportApp = Pick<App, 'catalog' | 'db' | 'tables'>

/** Puts content away, if it is not there already; false if there is none to be opened. */
export type ContentSink = (file: FileMetadata, open: () => Promise<Readable | undefined>) => Promise<boolean>

type FilesById = ReadonlyMap<number, StoredFile>

const MAX_READ_ATTEMPTS = 5

/** Records as they were selected, with what their files are in the place of ids. A file that is gone stands as its id. */
export async function addFileFacts(
  db: Queryable,
  table: Table,
  records: readonly WireRecord[],
): Promise<readonly WireRecord[]> {
  if (table.fileFields.length === 0) return records
  const known = await findFilesById(db, table.dialect, listFileIds(table, records))
  return records.map((record) => replaceFileIds(table, record, known))
}

export class FileExport {
  readonly #select: Select

  constructor(
    private readonly app: ExportApp,
    private readonly table: Table,
    selection: Selection,
    private readonly sink: ContentSink = async () => Promise.resolve(true),
  ) {
    this.#select = compileSelection(app.db.dialect, selection)
  }

  /** The same records: those that were written since as they are now, those that were removed since left out. */
  async complete(page: readonly WireRecord[]): Promise<readonly WireRecord[]> {
    const known = await this.#find(page)
    const complete: WireRecord[] = []
    for (const record of page) {
      const saved = (await this.#saveContents(record, known)) ?? (await this.#readAgain(record.id))
      if (saved) complete.push(saved)
    }
    return complete
  }

  async #readAgain(id: number): Promise<WireRecord | undefined> {
    for (let attempt = 1; attempt <= MAX_READ_ATTEMPTS; attempt++) {
      const record = await read(this.app.db.reader, this.table, id, this.#select)
      if (!record) return undefined
      const kept = await this.#saveContents(record, await this.#find([record]))
      if (kept) return kept
    }
    throw new ConfigError('The export has stopped', [
      `${this.table.model.name} ${id}: the content of its files cannot be read`,
    ])
  }

  /** Undefined if the record does not hold these files any more. */
  async #saveContents(record: WireRecord, known: FilesById): Promise<WireRecord | undefined> {
    for (const id of listFileIds(this.table, [record])) {
      const file = known.get(id)
      if (!file || !(await this.#saveContent(file))) return undefined
    }
    return replaceFileIds(this.table, record, known)
  }

  async #saveContent(file: StoredFile): Promise<boolean> {
    const { db } = this.app
    try {
      return await this.sink(file, () => db.blobs.open(file))
    } catch (error) {
      // It may have been removed while it was read.
      if ((await findFilesById(db.reader, db.dialect, [file.id])).has(file.id)) throw error
      return false
    }
  }

  async #find(records: readonly WireRecord[]): Promise<FilesById> {
    const { db } = this.app
    return findFilesById(db.reader, db.dialect, listFileIds(this.table, records))
  }
}

function listFileIds({ fileFields }: Table, records: readonly WireRecord[]): number[] {
  const ids = records.flatMap((record) => fileFields.map(({ name }) => record[name] ?? null))
  return ids.filter((id) => id !== null).map(Number)
}

function replaceFileIds({ fileFields }: Table, record: WireRecord, known: FilesById): WireRecord {
  const files = fileFields.map(({ name }) => {
    const file = known.get(Number(record[name] ?? 0))
    return [name, file ? pickFileMetadata(file) : (record[name] ?? null)] as const
  })
  return { ...record, ...Object.fromEntries(files) }
}
