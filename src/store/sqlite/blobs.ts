// Stores the content of files in a folder beside the database file. docs/decisions/files.md explains why no crash loses content or leaves
// orphans.
//
//   <database>.files/incoming/<process>-<token>/<key>   received; its row may be committed already
//   <database>.files/retain/<process>-<token>           a backup runs: nothing is removed
//   <database>.files/<2 digits>/<key>                   has a row in verso_file or in verso_file_gone
//
// A file moves only from the first folder to the second. A removal looks into them in this order, so it cannot miss the file.
import { randomBytes } from 'node:crypto'
import { existsSync, renameSync, statSync } from 'node:fs'
import { open, unlink } from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { createUnwritableError } from '../engine/write-health.js'
import {
  NECESSARY_TRANSACTION,
  type BlobStore,
  type PendingBlob,
  type BlobLocation,
  type Queryable,
  type Transaction,
  type TransactionOptions,
} from '../engine/database.js'
import type { ByteRange } from '../../wire.js'
import { hasFileKey } from '../records/files.js'
import { BlobRetentions } from './blob-retentions.js'
import { listEntries, listKeys, removeFolderIfEmpty, unlinkIfExists } from './blob-folder.js'
import { PRIVATE_FILE_MODE, makeFolder, syncFolder } from '../engine/private-files.js'
import { isFileMissing, isNotWritable, translateFileError } from '../engine/file-errors.js'
import {
  UPLOAD_EXPIRY_MS,
  createUploadExpiredError,
  writeUpload,
  createUnreadableError,
} from '../engine/upload.js'
import { isProcessAlive } from '../engine/processes.js'

const FINAL_FOLDER = /^[0-9a-f]{2}$/
const INCOMING_FOLDER = 'incoming'
const MAX_COLLECTED_KEYS = 1_000
/** The folders that databases of this process have open. */
const OPEN_FOLDERS = new Set<string>()

interface BlobDatabase {
  readonly reader: Queryable
  transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions): Promise<T>
}

export class SqliteBlobStore implements BlobStore {
  readonly #ownFolderName = `${process.pid}-${randomBytes(8).toString('hex')}`
  /** Uploads between `receive` and `finish`. */
  readonly #pendingKeys = new Set<string>()
  #collecting: Promise<void> | undefined
  #mustCollectAgain = false
  readonly #retentions: BlobRetentions

  constructor(
    readonly folder: string,
    private readonly db: BlobDatabase,
  ) {
    OPEN_FOLDERS.add(this.#ownFolderName)
    this.#retentions = new BlobRetentions(path.join(folder, 'retain'))
  }

  countPending(): number {
    return this.#pendingKeys.size
  }

  async receive(source: AsyncIterable<Uint8Array>, limitBytes: number): Promise<PendingBlob> {
    const key = randomBytes(16).toString('hex')
    const pendingPath = this.#pendingPath(key)
    this.#pendingKeys.add(key)
    try {
      this.#createOwnFolder()
      const handle = await open(pendingPath, 'wx', PRIVATE_FILE_MODE)
      let received: Omit<PendingBlob, 'key'>
      try {
        received = await writeUpload(handle, source, limitBytes)
      } finally {
        await handle.close()
      }
      // Makes the entry of the folder durable, too: a row must never survive a crash that its content does not.
      syncFolder(path.dirname(pendingPath))
      return { key, ...received }
    } catch (error) {
      this.#pendingKeys.delete(key)
      // If this fails, `recover` removes the file later.
      await unlink(pendingPath).catch(() => undefined)
      // The folder is beside the database file, so the database is not writable either.
      throw isNotWritable(error) ? createUnwritableError('read-only', error) : translateFileError(error)
    }
  }

  /** The check is safe, even if another process takes this one for dead: that process also removes content in a transaction. */
  async store(_: Transaction, __: number, { key }: PendingBlob): Promise<void> {
    if (!existsSync(this.#pendingPath(key))) throw createUploadExpiredError()
  }

  async finish({ key }: PendingBlob): Promise<void> {
    try {
      if (await hasFileKey(this.db.reader, key)) this.#moveToFinal(this.#pendingPath(key), key)
      else unlinkIfExists(this.#pendingPath(key))
    } catch {
      // `open` also finds content in the incoming folder. `recover` removes content without a row.
    } finally {
      this.#pendingKeys.delete(key)
    }
  }

  async drop(tx: Transaction, { key }: BlobLocation): Promise<void> {
    await tx.run('insert into verso_file_gone (key) values (?)', [key])
  }

  async collect(): Promise<void> {
    this.#mustCollectAgain = true
    // After an error the keys remain in verso_file_gone, and housekeeping tries again.
    this.#collecting ??= this.#collectUntilDone().catch(() => undefined)
    await this.#collecting
  }

  async open({ key, size }: BlobLocation, range?: ByteRange): Promise<Readable | undefined> {
    for (const candidate of this.#listCandidatePaths(key)) {
      try {
        const handle = await open(candidate, 'r')
        const { size: storedSize } = await handle.stat()
        // The open handle delivers the whole content, even if the file is removed meanwhile.
        if (storedSize === size)
          return handle.createReadStream(range ? { start: range.first, end: range.last } : {})
        await handle.close()
        throw new Error(`the content of file ${key} has ${storedSize} bytes instead of ${size}`)
      } catch (error) {
        if (!isFileMissing(error)) throw createUnreadableError(error)
      }
    }
    return undefined
  }

  async openInSnapshot(_: Queryable, file: BlobLocation): Promise<Readable | undefined> {
    return this.open(file)
  }

  async retainDropped(): Promise<() => void> {
    return Promise.resolve(this.#retentions.begin())
  }

  async recover(abandonedAfterMs = UPLOAD_EXPIRY_MS): Promise<void> {
    if (!existsSync(this.folder)) return
    for (const name of this.#listIncomingFolders()) {
      if (name === this.#ownFolderName) await this.#recoverOwnFolder(abandonedAfterMs)
      else if (this.#isAbandoned(name, abandonedAfterMs)) await this.#recoverFolder(name)
    }
    await this.#collectDropped()
  }

  async *findOrphans(): AsyncGenerator<string> {
    for (const name of listEntries(this.folder).filter((each) => FINAL_FOLDER.test(each))) {
      for (const key of listKeys(path.join(this.folder, name)))
        if (await this.#isOrphan(key)) yield this.#finalPath(key)
    }
  }

  /** Checks the rows after the file was found: a row is inserted before its content moves here, and deleted before its content. */
  async #isOrphan(key: string): Promise<boolean> {
    if (await hasFileKey(this.db.reader, key)) return false
    const gone = await this.db.reader.all('select key from verso_file_gone where key = ?', [key])
    return gone.length === 0 && existsSync(this.#finalPath(key))
  }

  async close(): Promise<void> {
    await this.#collecting
    // Uploads that are not finished by now are lost. After an error the next start removes their content.
    await this.#recoverOwnFolder(0).catch(() => undefined)
    OPEN_FOLDERS.delete(this.#ownFolderName)
    removeFolderIfEmpty(this.#incomingFolder(this.#ownFolderName))
  }

  /** Keeps the content in the folder of an ended process that has a row, and removes the rest. */
  async #recoverFolder(name: string): Promise<void> {
    const folder = this.#incomingFolder(name)
    const keys = listKeys(folder)
    // In a transaction: if the process is alive after all, it cannot insert a row meanwhile for content that is removed here.
    if (keys.length > 0)
      await this.db.transaction(async (tx) => {
        for (const key of keys) {
          if (await hasFileKey(tx, key)) this.#moveToFinal(path.join(folder, key), key)
          else unlinkIfExists(path.join(folder, key))
        }
      }, NECESSARY_TRANSACTION)
    removeFolderIfEmpty(folder)
  }

  /** Recovers content without a pending upload and content of abandoned uploads. The latter is never moved: its row may be uncommitted. */
  async #recoverOwnFolder(abandonedAfterMs: number): Promise<void> {
    const folder = this.#incomingFolder(this.#ownFolderName)
    const isAbandoned = (key: string) => {
      const { mtimeMs } = statSync(path.join(folder, key), { throwIfNoEntry: false }) ?? { mtimeMs: Infinity }
      // The time of a file has fractions of a millisecond, `Date.now` has none: the age could be negative.
      return !this.#pendingKeys.has(key) || Date.now() - Math.floor(mtimeMs) >= abandonedAfterMs
    }
    const keys = existsSync(folder) ? listKeys(folder).filter(isAbandoned) : []
    if (keys.length === 0) return
    await this.db.transaction(async (tx) => {
      for (const key of keys) {
        const file = path.join(folder, key)
        if (!(await hasFileKey(tx, key))) unlinkIfExists(file)
        else if (!this.#pendingKeys.has(key)) this.#moveToFinal(file, key)
      }
    }, NECESSARY_TRANSACTION)
    for (const key of keys) if (!existsSync(path.join(folder, key))) this.#pendingKeys.delete(key)
  }

  #isAbandoned(name: string, abandonedAfterMs: number): boolean {
    if (OPEN_FOLDERS.has(name)) return false
    const pid = Number(/^(\d+)-[0-9a-f]{16}$/.exec(name)?.[1] ?? NaN)
    if (!Number.isSafeInteger(pid)) return false
    const { mtimeMs } = statSync(this.#incomingFolder(name), { throwIfNoEntry: false }) ?? {
      mtimeMs: Infinity,
    }
    // A folder with our process id that is not open belongs to an ended process. An old folder does, too: its process id was reused.
    return pid === process.pid || !isProcessAlive(pid) || Date.now() - mtimeMs > abandonedAfterMs
  }

  async #collectUntilDone(): Promise<void> {
    try {
      while (this.#mustCollectAgain) {
        this.#mustCollectAgain = false
        await this.#collectDropped()
      }
    } finally {
      this.#collecting = undefined
    }
  }

  async #collectDropped(): Promise<void> {
    for (;;) {
      const rows = await this.db.reader.all(`select key from verso_file_gone limit ${MAX_COLLECTED_KEYS}`)
      const keys = rows.map((row) => String(row['key']))
      // Checked after the keys were read: a snapshot that begins later does not contain their rows.
      if (keys.length === 0 || this.#retentions.isAnyActive()) return
      const emptied = new Set<string>()
      for (const key of keys) {
        for (const name of this.#listIncomingFolders())
          unlinkIfExists(path.join(this.#incomingFolder(name), key))
        if (unlinkIfExists(this.#finalPath(key))) emptied.add(path.dirname(this.#finalPath(key)))
      }
      // Before the keys are deleted: otherwise a power cut could restore a file that no row names.
      for (const folder of emptied) syncFolder(folder)
      await this.db.transaction(async (tx) => {
        for (const key of keys) await tx.run('delete from verso_file_gone where key = ?', [key])
      }, NECESSARY_TRANSACTION)
    }
  }

  #moveToFinal(from: string, key: string): void {
    const finalPath = this.#finalPath(key)
    makeFolder(path.dirname(finalPath))
    try {
      renameSync(from, finalPath)
    } catch (error) {
      // Another process has moved or removed it.
      if (!isFileMissing(error)) throw error
    }
  }

  #createOwnFolder(): void {
    const folder = this.#incomingFolder(this.#ownFolderName)
    if (existsSync(folder)) return
    makeFolder(folder)
    for (const parent of [path.dirname(folder), this.folder, path.dirname(this.folder)]) syncFolder(parent)
  }

  #listIncomingFolders(): string[] {
    return listEntries(this.#incomingFolder(''))
  }

  /** Ends with the final path again, because the file may move there during the search. */
  #listCandidatePaths(key: string): string[] {
    const incoming = this.#listIncomingFolders().map((name) => path.join(this.#incomingFolder(name), key))
    return [this.#finalPath(key), ...incoming, this.#finalPath(key)]
  }

  #finalPath(key: string): string {
    return path.join(this.folder, key.slice(0, 2), key)
  }

  #pendingPath(key: string): string {
    return path.join(this.#incomingFolder(this.#ownFolderName), key)
  }

  #incomingFolder(name: string): string {
    return path.join(this.folder, INCOMING_FOLDER, name)
  }
}
