// Restores a backup into an empty database of either engine, and verifies the result before any other program can use it.
import { randomInt } from 'node:crypto'
import { ConfigError, summarizeError } from '../../errors.js'
import type { BackupTable } from '../../store/backup/backup-tables.js'
import { insertBackupFiles, insertBackupRows, parseBackupRows } from '../../store/backup/restored-rows.js'
import type { BackupRow, RestoredFile } from '../../store/backup/restored-rows.js'
import {
  advanceRestoredIds,
  claimEmptyDatabase,
  completeRestoredTable,
  createRestoredTables,
  dropRestoredTables,
  prepareRestoredReads,
  releaseRestoredDatabase,
  RESTORE_FAILED,
  type RestoreClaim,
} from '../../store/backup/restore-tables.js'
import type { Database } from '../../store/engine/database.js'
import { INTERNAL_TABLES_VERSION } from '../../store/schema/internal-tables.js'
import { parseSnapshots } from '../../store/schema/stored-snapshots.js'
import type { BackupEnd, BackupHeader, RestoreFacts } from './backup.js'
import { createDamagedError, FRAME_TYPES, readFrames, type Frame } from './backup-format.js'
import { completeRestore, type CompletionOptions } from './complete-restore.js'
import type { RepeatedPurges } from '../maintenance/repeated-purges.js'
import { verifyRestore } from './verify-restore.js'
import type { Catalog } from '../../model/catalog/catalog.js'

/** A transaction inserts about this much JSON, which takes several times as much memory when it is parsed. */
const TRANSACTION_BYTES = 1024 * 1024
const MAX_TRANSACTION_FILES = 100
/** MAX_SAFE_INTEGER is too large for `randomInt`. */
const MAX_TOKEN = 2 ** 47

export interface RestoreOptions extends CompletionOptions {
  /** The bytes of the backup. */
  readonly source: AsyncIterable<Uint8Array>
  /** Permits to compare the records of these models with the Log, too. */
  readonly catalog?: Catalog | undefined
  /** Called with the number of rows and files since the last call. */
  readonly onProgress?: (count: number) => void
  /** Called when all rows are stored and the checks begin. */
  readonly onVerifying?: () => void
}

export interface RestoredBackup extends RestoreFacts {
  /** A sentence for each check. */
  readonly checks: readonly string[]
  readonly repeated: RepeatedPurges
}

/**
 * Restores a backup. If it fails, the database is empty again; if the process is killed, every program refuses the database until the restore
 * was repeated.
 */
export async function restoreBackup(db: Database, options: RestoreOptions): Promise<RestoredBackup> {
  const frames = new FrameCursor(readFrames(options.source))
  const header = await readHeader(frames).catch(async (error: unknown) => {
    throw await findDamage(frames, error)
  })
  const claim = { token: randomInt(MAX_TOKEN) }
  await claimEmptyDatabase(db, claim)
  try {
    return await new RestoreRun(db, claim, options).run(frames, header)
  } catch (error) {
    const cause = await findDamage(frames, error)
    try {
      await dropRestoredTables(db, claim)
    } catch (dropError) {
      // A ConfigError: another restore has taken over the database.
      throw dropError instanceof ConfigError ? cause : createUnfinishedError(cause)
    }
    throw cause
  }
}

/** For example, the disk of the database is full. */
function createUnfinishedError(cause: unknown): ConfigError {
  const reason = cause instanceof ConfigError ? cause.errors.join('; ') : summarizeError(cause).reason
  return new ConfigError(RESTORE_FAILED, [
    `${reason.replace(/; nothing was changed$/, '')}. The database has a part of the backup, and every command refuses it until a restore into it succeeds`,
  ])
}

async function readHeader(frames: FrameCursor): Promise<BackupHeader> {
  const frame = await frames.next()
  if (frame?.type !== FRAME_TYPES.header) throw createDamagedError()
  const header = parseFrame(frame) as BackupHeader
  if (header.internalTables > INTERNAL_TABLES_VERSION)
    throw new ConfigError(RESTORE_FAILED, [
      `release ${header.release} of Verso has made the backup, and this release is older: install that release or a later one; nothing was changed`,
    ])
  return header
}

/** A damaged backup from a pipe can fail in any way before its checksum is read. Returns the error that explains the first one. */
async function findDamage(frames: FrameCursor, error: unknown): Promise<unknown> {
  if (error instanceof ConfigError) return error
  try {
    while (await frames.next());
    return error
  } catch (damage) {
    return damage
  }
}

/** Frames with one frame of lookahead. */
class FrameCursor {
  #peeked: Frame | undefined

  constructor(private readonly frames: AsyncGenerator<Frame>) {}

  /** Undefined after the last frame, whose digest is correct then. */
  async peek(): Promise<Frame | undefined> {
    return (this.#peeked ??= await this.#read())
  }

  async next(): Promise<Frame | undefined> {
    const frame = await this.peek()
    this.#peeked = undefined
    return frame
  }

  async #read(): Promise<Frame | undefined> {
    const next = await this.frames.next()
    return next.done ? undefined : next.value
  }

  /** The payloads of the next frames of this type. */
  async *payloads(type: Frame['type']): AsyncGenerator<Buffer> {
    for (;;) {
      const frame = await this.peek()
      if (frame?.type !== type) return
      this.#peeked = undefined
      yield frame.payload
    }
  }
}

function parseFrame({ payload }: Frame): unknown {
  return JSON.parse(payload.toString())
}

class RestoreRun {
  constructor(
    private readonly db: Database,
    private readonly claim: RestoreClaim,
    private readonly options: RestoreOptions,
  ) {}

  async run(frames: FrameCursor, header: BackupHeader): Promise<RestoredBackup> {
    const { db, claim } = this
    const tables = new Map(header.tables.map((table) => [table.name, table]))
    const texts = new Map(Object.entries(header.schema))
    await createRestoredTables(db, claim, texts, tables)
    const end = await this.#loadTables(frames, tables)
    for (const [model, snapshot] of parseSnapshots(texts))
      await completeRestoredTable(db, claim, model, snapshot)
    const lastIds = end.tables.map(({ name, lastId }) => [findTable(tables, name), lastId] as const)
    await advanceRestoredIds(db, claim, lastIds)
    await prepareRestoredReads(db, claim)
    this.options.onVerifying?.()
    const facts: RestoreFacts = { header, end }
    const checks = await verifyRestore(db, facts, this.options.catalog)
    const repeated = await completeRestore(db, claim, header, this.options)
    await releaseRestoredDatabase(db, claim)
    return { ...facts, checks, repeated }
  }

  async #loadTables(frames: FrameCursor, tables: ReadonlyMap<string, BackupTable>): Promise<BackupEnd> {
    for (;;) {
      const frame = await frames.next()
      if (frame?.type === FRAME_TYPES.end) {
        // The digest is correct if no frame follows.
        if (await frames.next()) throw createDamagedError()
        return parseFrame(frame) as BackupEnd
      }
      if (frame?.type !== FRAME_TYPES.table) throw createDamagedError()
      const { name } = parseFrame(frame) as { readonly name: string }
      const table = findTable(tables, name)
      await this.#loadRows(frames, table)
      await this.#loadFiles(frames, table)
    }
  }

  async #loadRows(frames: FrameCursor, table: BackupTable): Promise<void> {
    let rows: BackupRow[] = []
    let bytes = 0
    const flush = async () => {
      if (rows.length === 0) return
      await insertBackupRows(this.db, this.claim, table, rows)
      this.options.onProgress?.(rows.length)
      ;[rows, bytes] = [[], 0]
    }
    for await (const payload of frames.payloads(FRAME_TYPES.rows)) {
      for (const row of parseBackupRows(payload.toString())) rows.push(row)
      bytes += payload.length
      if (bytes >= TRANSACTION_BYTES) await flush()
    }
    await flush()
  }

  async #loadFiles(frames: FrameCursor, table: BackupTable): Promise<void> {
    let files: RestoredFile[] = []
    let bytes = 0
    const flush = async () => {
      if (files.length === 0) return
      await insertBackupFiles(this.db, this.claim, table, files)
      this.options.onProgress?.(files.length)
      ;[files, bytes] = [[], 0]
    }
    try {
      while ((await frames.peek())?.type === FRAME_TYPES.file) {
        const [row = []] = parseBackupRows(String((await frames.next())?.payload))
        const pending = await this.db.blobs.receive(frames.payloads(FRAME_TYPES.content), Infinity)
        files.push({ row, pending })
        bytes += pending.size
        if (bytes >= TRANSACTION_BYTES || files.length >= MAX_TRANSACTION_FILES) await flush()
      }
      await flush()
    } finally {
      // After an error: content without a row.
      for (const { pending } of files) await this.db.blobs.finish(pending)
    }
  }
}

function findTable(tables: ReadonlyMap<string, BackupTable>, name: string): BackupTable {
  const table = tables.get(name)
  if (!table) throw createDamagedError()
  return table
}
