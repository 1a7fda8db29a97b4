// Exports the files of records: saves their contents first, then adds their metadata to the record.
import type { Readable } from 'node:stream'
import { ConfigError } from '../../errors.js'
import { pickFileMetadata, type FileMetadata } from '../../model/catalog/file-metadata.js'
import type { Selection } from '../../model/query/selection.js'
import type { Queryable } from '../../store/engine/database.js'
import { findFilesById, type StoredFile } from '../../store/records/files.js'
import { readById } from '../../store/records/records.js'
import { compileSelection, type Select } from '../../store/sql/select.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'

/** The part of App that an export needs. Read-only commands have no more than this. */
export type ExportApp = Pick<App, 'catalog' | 'db' | 'tables'>

/** Saves the content unless it is already saved. Resolves with false if the content no longer exists. */
export type ContentSink = (file: FileMetadata, open: () => Promise<Readable | undefined>) => Promise<boolean>

type FilesById = ReadonlyMap<number, StoredFile>

const MAX_READ_ATTEMPTS = 5

/** Replaces the ids of files by their metadata. A deleted file remains an id. */
export async function addFileMetadata(
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

  /** Adds file metadata to the page. Records that changed meanwhile are read again, and deleted records are dropped. */
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
      const record = await readById(this.app.db.reader, this.table, id, { select: this.#select })
      if (!record) return undefined
      const exported = await this.#saveContents(record, await this.#find([record]))
      if (exported) return exported
    }
    throw new ConfigError('The export has stopped', [
      `${this.table.model.name} ${id}: the content of its files cannot be read`,
    ])
  }

  /** Returns undefined if the record no longer has these files. */
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
      // A concurrent write may have deleted the file while it was read.
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
