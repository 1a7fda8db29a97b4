// Content on disk, in a folder beside the database file. See docs/decisions/files.md for why no crash loses any or leaves any.
//
//   <database>.files/incoming/<process>-<token>/<key>   has arrived; a row may be there already
//   <database>.files/<2 digits>/<key>                   has a row, or one in verso_file_gone
//
// A file moves only from the first place to the second. Whoever removes one looks in this order, and so cannot miss it.
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, renameSync, statSync } from 'node:fs'
import { open, unlink } from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { createUnwritableError } from '../engine/database-condition.js'
import type { BlobStore, PendingBlob, BlobLocation, Queryable, Transaction } from '../engine/database.js'
import { hasFileKey } from '../records/files.js'
import { makeFolder, removeFolderIfEmpty, unlinkIfExists, syncFolder } from './blob-folder.js'
import { PRIVATE_FILE_MODE } from '../engine/private-files.js'
import {
  readErrorCode,
  UPLOAD_EXPIRY_MS,
  createUploadExpiredError,
  isFileMissing,
  isNotWritable,
  writeUpload,
  translateFileError,
  createUnreadableError,
} from '../engine/pending-blob.js'

const BLOB_KEY = /^[0-9a-f]{32}$/
const INCOMING_FOLDER = 'incoming'
const MAX_COLLECTED_KEYS = 1_000
/** The folders that databases of this process have open. */
const OPEN_FOLDERS = new Set<string>()

interface BlobDatabase {
  readonly reader: Queryable
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
}

export class SqliteBlobStore implements BlobStore {
  readonly #ownFolderName = `${process.pid}-${randomBytes(8).toString('hex')}`
  /** What arrives, or has arrived and is not settled. */
  readonly #pendingKeys = new Set<string>()
  #collecting: Promise<void> | undefined
  #mustCollectAgain = false

  constructor(
    readonly folder: string,
    private readonly db: BlobDatabase,
  ) {
    OPEN_FOLDERS.add(this.#ownFolderName)
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
      // With its name: a row must never be more durable than what it stands for.
      syncFolder(path.dirname(pendingPath))
      return { key, ...received }
    } catch (error) {
      this.#pendingKeys.delete(key)
      // If it cannot be removed now, `recover` finds it.
      await unlink(pendingPath).catch(() => undefined)
      // The folder lies beside the database file.
      throw isNotWritable(error) ? createUnwritableError('read-only', error) : translateFileError(error)
    }
  }

  /** Safe whatever others believe of this process: who removes content without a row does so in a transaction, too. */
  async store(_: Transaction, __: number, { key }: PendingBlob): Promise<void> {
    if (!existsSync(this.#pendingPath(key))) throw createUploadExpiredError()
  }

  async finish({ key }: PendingBlob): Promise<void> {
    try {
      if (await hasFileKey(this.db.reader, key)) this.#moveToFinal(this.#pendingPath(key), key)
      else unlinkIfExists(this.#pendingPath(key))
    } catch {
      // It stays where it is, and is found there. What has no row goes with the next `recover`.
    } finally {
      this.#pendingKeys.delete(key)
    }
  }

  async drop(tx: Transaction, { key }: BlobLocation): Promise<void> {
    await tx.run('insert into verso_file_gone (key) values (?)', [key])
  }

  async collect(): Promise<void> {
    this.#mustCollectAgain = true
    // What cannot be removed now has its row in verso_file_gone, and is tried again by housekeeping.
    this.#collecting ??= this.#collectUntilDone().catch(() => undefined)
    await this.#collecting
  }

  async open({ key, size }: BlobLocation): Promise<Readable | undefined> {
    for (const candidate of this.#listCandidatePaths(key)) {
      try {
        const handle = await open(candidate, 'r')
        const { size: storedSize } = await handle.stat()
        // From here on it is read to its end, also if it is removed meanwhile.
        if (storedSize === size) return handle.createReadStream()
        await handle.close()
        throw new Error(`the content of file ${key} has ${storedSize} bytes and had ${size}`)
      } catch (error) {
        if (!isFileMissing(error)) throw createUnreadableError(error)
      }
    }
    return undefined
  }

  async recover(forgottenMs = UPLOAD_EXPIRY_MS): Promise<void> {
    if (!existsSync(this.folder)) return
    for (const name of this.#listIncomingFolders()) {
      if (name === this.#ownFolderName) await this.#recoverOwnFolder(forgottenMs)
      else if (this.#isAbandoned(name, forgottenMs)) await this.#recoverFolder(name)
    }
    await this.#collectDropped()
  }

  async *findOrphans(): AsyncGenerator<string> {
    if (!existsSync(this.folder)) return
    for (const name of readdirSync(this.folder).filter((each) => each !== INCOMING_FOLDER)) {
      for (const key of listKeys(path.join(this.folder, name)))
        if (await this.#isOrphan(key)) yield this.#finalPath(key)
    }
  }

  /** Looked for after it was found: a row comes before its content moves in, and goes before its content does. */
  async #isOrphan(key: string): Promise<boolean> {
    if (await hasFileKey(this.db.reader, key)) return false
    const gone = await this.db.reader.all('select key from verso_file_gone where key = ?', [key])
    return gone.length === 0 && existsSync(this.#finalPath(key))
  }

  async close(): Promise<void> {
    await this.#collecting
    // Whoever still has something here comes too late. What cannot be removed goes with the next start.
    await this.#recoverOwnFolder(0).catch(() => undefined)
    OPEN_FOLDERS.delete(this.#ownFolderName)
    removeFolderIfEmpty(this.#incomingFolder(this.#ownFolderName))
  }

  /** What is in the folder of a process that is no more: with a row it stays, without one it goes. */
  async #recoverFolder(name: string): Promise<void> {
    const folder = this.#incomingFolder(name)
    const keys = listKeys(folder)
    // In a transaction: a process that only looked dead cannot store a row meanwhile for what is removed here.
    if (keys.length > 0)
      await this.db.transaction(async (tx) => {
        for (const key of keys) {
          if (await hasFileKey(tx, key)) this.#moveToFinal(path.join(folder, key), key)
          else unlinkIfExists(path.join(folder, key))
        }
      })
    removeFolderIfEmpty(folder)
  }

  /**
   * What no upload holds, and what one has held for so long that it was forgotten. Of the latter nothing is moved: its row may not be
   * committed yet.
   */
  async #recoverOwnFolder(forgottenMs: number): Promise<void> {
    const folder = this.#incomingFolder(this.#ownFolderName)
    const isForgotten = (key: string) => {
      const { mtimeMs } = statSync(path.join(folder, key), { throwIfNoEntry: false }) ?? { mtimeMs: Infinity }
      return !this.#pendingKeys.has(key) || Date.now() - mtimeMs >= forgottenMs
    }
    const keys = existsSync(folder) ? listKeys(folder).filter(isForgotten) : []
    if (keys.length === 0) return
    await this.db.transaction(async (tx) => {
      for (const key of keys) {
        const file = path.join(folder, key)
        if (!(await hasFileKey(tx, key))) unlinkIfExists(file)
        else if (!this.#pendingKeys.has(key)) this.#moveToFinal(file, key)
      }
    })
    for (const key of keys) if (!existsSync(path.join(folder, key))) this.#pendingKeys.delete(key)
  }

  #isAbandoned(name: string, forgottenMs: number): boolean {
    if (OPEN_FOLDERS.has(name)) return false
    const pid = Number(/^(\d+)-[0-9a-f]{16}$/.exec(name)?.[1] ?? NaN)
    if (!Number.isSafeInteger(pid)) return false
    const { mtimeMs } = statSync(this.#incomingFolder(name), { throwIfNoEntry: false }) ?? {
      mtimeMs: Infinity,
    }
    // Our own number: a process had it before. After so long, another process has the number of whichever it was.
    return pid === process.pid || !isProcessAlive(pid) || Date.now() - mtimeMs > forgottenMs
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
      if (keys.length === 0) return
      const emptied = new Set<string>()
      for (const key of keys) {
        for (const name of this.#listIncomingFolders())
          unlinkIfExists(path.join(this.#incomingFolder(name), key))
        if (unlinkIfExists(this.#finalPath(key))) emptied.add(path.dirname(this.#finalPath(key)))
      }
      // Before its name is forgotten: else it might be there again after a power cut, and nobody would know of it.
      for (const folder of emptied) syncFolder(folder)
      await this.db.transaction(async (tx) => {
        for (const key of keys) await tx.run('delete from verso_file_gone where key = ?', [key])
      })
    }
  }

  #moveToFinal(from: string, key: string): void {
    const finalPath = this.#finalPath(key)
    makeFolder(path.dirname(finalPath))
    try {
      renameSync(from, finalPath)
    } catch (error) {
      // Moved or removed by somebody else.
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
    try {
      return readdirSync(this.#incomingFolder(''))
    } catch (error) {
      if (isFileMissing(error)) return []
      throw error
    }
  }

  /** It may move from the second to the first while we look. */
  #listCandidatePaths(key: string): string[] {
    const arriving = this.#listIncomingFolders().map((name) => path.join(this.#incomingFolder(name), key))
    return [this.#finalPath(key), ...arriving, this.#finalPath(key)]
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

function listKeys(folder: string): string[] {
  return readdirSync(folder).filter((entry) => BLOB_KEY.test(entry))
}

function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Somebody else's process is one, too.
    return readErrorCode(error) === 'EPERM'
  }
}
