// Writes a backup of a live database from one snapshot, as a stream.
import { createHash } from 'node:crypto'
import { ConfigError } from '../../errors.js'
import { listBackupTables, type BackupTable } from '../../store/backup/backup-tables.js'
import { readLastId, readTablePages } from '../../store/backup/table-pages.js'
import type { Database, Queryable } from '../../store/engine/database.js'
import { readClock } from '../../store/log/clock.js'
import { readLastSeq } from '../../store/log/feed.js'
import { FILE_TABLE, findFilesById, type StoredFile } from '../../store/records/files.js'
import {
  areInternalTablesCurrent,
  hasInternalTables,
  INTERNAL_TABLES_VERSION,
} from '../../store/schema/internal-tables.js'
import { readDatabaseId } from '../../store/schema/database-id.js'
import { parseSnapshots, readSnapshotTexts } from '../../store/schema/stored-snapshots.js'
import { BackupPace } from './backup-pace.js'
import { BackupWriter, FRAME_TYPES, type BackupSink } from './backup-format.js'

export const BACKUP_FAILED = 'No backup was written'
const CONTENT_BYTES = 256 * 1024

/** The first frame of a backup. */
export interface BackupHeader {
  /** The release that has made the backup. */
  readonly release: string
  readonly internalTables: number
  /** The time of the snapshot, by the clock of the database. */
  readonly takenAtMs: number
  /** The last sequence number of the Log. */
  readonly lastSeq: number
  /** Undefined for a database of an earlier release. */
  readonly databaseId?: number | undefined
  /** The schema snapshots as JSON texts, by model. */
  readonly schema: Readonly<Record<string, string>>
  readonly tables: readonly BackupTable[]
}

/** The content of each table. A restored database must have the same. */
export interface BackupEnd {
  readonly tables: readonly TableSummary[]
  readonly files: number
}

export interface TableSummary {
  readonly name: string
  readonly rows: number
  /** The SHA-256 of the rows as JSON text. */
  readonly sha256: string
  /** The last id that the table has generated. */
  readonly lastId: number
}

/** Facts about a restore, for the steps after the load. */
export interface RestoreFacts {
  readonly header: BackupHeader
  readonly end: BackupEnd
}

export interface BackupOptions {
  readonly release: string
  readonly sink: BackupSink
  /** Called with the number of rows and files since the last call. */
  readonly onProgress?: (count: number) => void
}

export interface WrittenBackup {
  readonly bytes: number
  readonly sha256: string
  readonly takenAtMs: number
  readonly lastSeq: number
  readonly rows: number
  readonly files: number
}

/** Writes everything but sessions, reset links and failed logins. Writers of the database never wait for it. */
export async function writeBackup(db: Database, options: BackupOptions): Promise<WrittenBackup> {
  if (!(await hasInternalTables(db)))
    throw new ConfigError(BACKUP_FAILED, ['the database has no tables of Verso: check --db'])
  // Throws if the database is newer than this program, or if a restore did not finish.
  await areInternalTablesCurrent(db.reader, db.dialect)
  const release = await db.blobs.retainDropped()
  try {
    return await db.queryPool.longSnapshot((snapshot) => new BackupRun(db, snapshot, options).run())
  } finally {
    release()
  }
}

class BackupRun {
  readonly #writer: BackupWriter
  readonly #pace: BackupPace
  readonly #summaries: TableSummary[] = []
  #files = 0

  constructor(
    private readonly db: Database,
    private readonly snapshot: Queryable,
    private readonly options: BackupOptions,
  ) {
    this.#writer = new BackupWriter(options.sink)
    this.#pace = new BackupPace(db)
  }

  async run(): Promise<WrittenBackup> {
    const { release } = this.options
    const takenAtMs = Math.floor(await readClock(this.snapshot, this.db.dialect))
    // The first read of a table begins the snapshot of SQLite.
    const lastSeq = await readLastSeq(this.snapshot)
    const texts = await readSnapshotTexts(this.snapshot)
    const tables = await listBackupTables(this.snapshot, this.db.dialect, parseSnapshots(texts))
    const header: BackupHeader = {
      release,
      internalTables: INTERNAL_TABLES_VERSION,
      takenAtMs,
      lastSeq,
      databaseId: await readDatabaseId(this.snapshot),
      schema: Object.fromEntries(texts),
      tables,
    }
    await this.#writer.begin()
    await this.#writer.writeJson(FRAME_TYPES.header, header)
    for (const table of tables) await this.#writeTable(table)
    const end: BackupEnd = { tables: this.#summaries, files: this.#files }
    await this.#writer.writeJson(FRAME_TYPES.end, end)
    const sha256 = await this.#writer.end()
    const rows = this.#summaries.reduce((sum, table) => sum + table.rows, 0)
    return { bytes: this.#writer.bytes, sha256, takenAtMs, lastSeq, rows, files: this.#files }
  }

  async #writeTable(table: BackupTable): Promise<void> {
    const hash = createRowHash()
    let rows = 0
    await this.#writer.writeJson(FRAME_TYPES.table, { name: table.name })
    const pause = () => this.#pace.pause()
    for await (const page of readTablePages(this.snapshot, this.db.dialect, table, pause)) {
      hash.add(page.text)
      rows += page.rows
      if (table.name === FILE_TABLE) await this.#writeFiles(table, page.text)
      else await this.#writer.write(FRAME_TYPES.rows, page.text)
      this.options.onProgress?.(page.rows)
    }
    const lastId = await readLastId(this.snapshot, this.db.dialect, table)
    this.#summaries.push({ name: table.name, rows, sha256: hash.digest(), lastId })
  }

  async #writeFiles({ columns }: BackupTable, text: string | Uint8Array): Promise<void> {
    const rows = JSON.parse(`[${toText(text)}]`) as unknown[][]
    const idIndex = columns.findIndex(({ name }) => name === 'id')
    const ids = rows.map((row) => Number(row[idIndex]))
    const files = await findFilesById(this.snapshot, this.db.dialect, ids)
    for (const row of rows) {
      const file = files.get(Number(row[idIndex]))
      if (!file) throw new Error(`file ${String(row[idIndex])} is missing in its own snapshot`)
      await this.#writer.writeJson(FRAME_TYPES.file, row)
      await this.#writeContent(file)
      this.#files++
    }
  }

  async #writeContent(file: StoredFile): Promise<void> {
    const content = await this.db.blobs.openInSnapshot(this.snapshot, file)
    if (!content) throw createContentError(file, 'has no content')
    const hash = createHash('sha256')
    for await (const part of joinChunks(content)) {
      hash.update(part)
      await this.#writer.write(FRAME_TYPES.content, part)
      await this.#pace.pause()
    }
    if (hash.digest('hex') !== file.sha256)
      throw createContentError(file, 'has other content than was stored')
  }
}

/** Joins chunks to parts of a size that compresses well. */
async function* joinChunks(chunks: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = []
  let size = 0
  for await (const chunk of chunks as AsyncIterable<Buffer>) {
    waiting.push(chunk)
    size += chunk.length
    if (size < CONTENT_BYTES) continue
    yield Buffer.concat(waiting)
    ;[waiting, size] = [[], 0]
  }
  if (size > 0) yield Buffer.concat(waiting)
}

function createContentError({ id, name }: StoredFile, error: string): ConfigError {
  return new ConfigError(BACKUP_FAILED, [
    `file ${id} (${name}) ${error}: find its record with verso verify, and store the file again or remove it; nothing was changed`,
  ])
}

/** Hashes rows as JSON text, independently of their pages. */
export function createRowHash() {
  const hash = createHash('sha256')
  return {
    add(text: string | Uint8Array): void {
      hash.update(text)
      hash.update(',')
    },
    digest: () => hash.digest('hex'),
  }
}

export function toText(text: string | Uint8Array): string {
  return typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.length).toString()
}
