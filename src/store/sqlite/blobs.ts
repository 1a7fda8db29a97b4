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
import { refusalFor } from '../engine/database-condition.js'
import type { Contents, Incoming, Located, Queryable, Transaction } from '../engine/database.js'
import { isKnown } from '../records/files.js'
import { makeFolder, removeIfEmpty, removeSync, syncFolder } from './blob-folder.js'
import { PRIVATE_FILE } from '../engine/private-files.js'
import {
  codeOf,
  FORGOTTEN_MS,
  forgotten,
  isMissing,
  isNotWritable,
  receiveInto,
  translateFileError,
  unreadable,
} from '../engine/pending-blob.js'

const KEY = /^[0-9a-f]{32}$/
const INCOMING = 'incoming'
const GONE_AT_ONCE = 1_000
/** The folders that databases of this process have open. */
const OPEN = new Set<string>()

interface Writable {
  readonly reader: Queryable
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
}

export class SqliteContents implements Contents {
  readonly #own = `${process.pid}-${randomBytes(8).toString('hex')}`
  /** What arrives, or has arrived and is not settled. */
  readonly #held = new Set<string>()
  #sweeping: Promise<void> | undefined
  #isAskedAgain = false

  constructor(
    readonly folder: string,
    private readonly db: Writable,
  ) {
    OPEN.add(this.#own)
  }

  pending(): number {
    return this.#held.size
  }

  async receive(source: AsyncIterable<Uint8Array>, limitBytes: number): Promise<Incoming> {
    const key = randomBytes(16).toString('hex')
    const place = this.#arriving(key)
    this.#held.add(key)
    try {
      this.#makeOwnFolder()
      const handle = await open(place, 'wx', PRIVATE_FILE)
      let received: Omit<Incoming, 'key'>
      try {
        received = await receiveInto(handle, source, limitBytes)
      } finally {
        await handle.close()
      }
      // With its name: a row must never be more durable than what it stands for.
      syncFolder(path.dirname(place))
      return { key, ...received }
    } catch (error) {
      this.#held.delete(key)
      // If it cannot be removed now, `recover` finds it.
      await unlink(place).catch(() => undefined)
      // The folder lies beside the database file.
      throw isNotWritable(error) ? refusalFor('read-only', error) : translateFileError(error)
    }
  }

  /** Safe whatever others believe of this process: who removes content without a row does so in a transaction, too. */
  async store(_: Transaction, __: number, { key }: Incoming): Promise<void> {
    if (!existsSync(this.#arriving(key))) throw forgotten()
  }

  async settle({ key }: Incoming): Promise<void> {
    try {
      if (await isKnown(this.db.reader, key)) this.#moveIn(this.#arriving(key), key)
      else removeSync(this.#arriving(key))
    } catch {
      // It stays where it is, and is found there. What has no row goes with the next `recover`.
    } finally {
      this.#held.delete(key)
    }
  }

  async drop(tx: Transaction, { key }: Located): Promise<void> {
    await tx.run('insert into verso_file_gone (key) values (?)', [key])
  }

  async sweep(): Promise<void> {
    this.#isAskedAgain = true
    // What cannot be removed now has its row in verso_file_gone, and is tried again by housekeeping.
    this.#sweeping ??= this.#sweepAll().catch(() => undefined)
    await this.#sweeping
  }

  async open({ key, size }: Located): Promise<Readable | undefined> {
    for (const place of this.#placesOf(key)) {
      try {
        const handle = await open(place, 'r')
        const { size: there } = await handle.stat()
        // From here on it is read to its end, also if it is removed meanwhile.
        if (there === size) return handle.createReadStream()
        await handle.close()
        throw new Error(`the content of file ${key} has ${there} bytes and had ${size}`)
      } catch (error) {
        if (!isMissing(error)) throw unreadable(error)
      }
    }
    return undefined
  }

  async recover(forgottenMs = FORGOTTEN_MS): Promise<void> {
    if (!existsSync(this.folder)) return
    for (const name of this.#incomingFolders()) {
      if (name === this.#own) await this.#clearOwn(forgottenMs)
      else if (this.#isAbandoned(name, forgottenMs)) await this.#clear(name)
    }
    await this.#sweepGone()
  }

  async *strays(): AsyncGenerator<string> {
    if (!existsSync(this.folder)) return
    for (const name of readdirSync(this.folder).filter((each) => each !== INCOMING)) {
      for (const key of keysIn(path.join(this.folder, name)))
        if (await this.#isStray(key)) yield this.#placeOf(key)
    }
  }

  /** Looked for after it was found: a row comes before its content moves in, and goes before its content does. */
  async #isStray(key: string): Promise<boolean> {
    if (await isKnown(this.db.reader, key)) return false
    const gone = await this.db.reader.all('select key from verso_file_gone where key = ?', [key])
    return gone.length === 0 && existsSync(this.#placeOf(key))
  }

  async close(): Promise<void> {
    await this.#sweeping
    // Whoever still has something here comes too late. What cannot be removed goes with the next start.
    await this.#clearOwn(0).catch(() => undefined)
    OPEN.delete(this.#own)
    removeIfEmpty(this.#incoming(this.#own))
  }

  /** What is in the folder of a process that is no more: with a row it stays, without one it goes. */
  async #clear(name: string): Promise<void> {
    const folder = this.#incoming(name)
    const keys = keysIn(folder)
    // In a transaction: a process that only looked dead cannot store a row meanwhile for what is removed here.
    if (keys.length > 0)
      await this.db.transaction(async (tx) => {
        for (const key of keys) {
          if (await isKnown(tx, key)) this.#moveIn(path.join(folder, key), key)
          else removeSync(path.join(folder, key))
        }
      })
    removeIfEmpty(folder)
  }

  /**
   * What no upload holds, and what one has held for so long that it was forgotten. Of the latter nothing is moved: its row may not be
   * committed yet.
   */
  async #clearOwn(forgottenMs: number): Promise<void> {
    const folder = this.#incoming(this.#own)
    const isForgotten = (key: string) => {
      const { mtimeMs } = statSync(path.join(folder, key), { throwIfNoEntry: false }) ?? { mtimeMs: Infinity }
      return !this.#held.has(key) || Date.now() - mtimeMs >= forgottenMs
    }
    const keys = existsSync(folder) ? keysIn(folder).filter(isForgotten) : []
    if (keys.length === 0) return
    await this.db.transaction(async (tx) => {
      for (const key of keys) {
        const file = path.join(folder, key)
        if (!(await isKnown(tx, key))) removeSync(file)
        else if (!this.#held.has(key)) this.#moveIn(file, key)
      }
    })
    for (const key of keys) if (!existsSync(path.join(folder, key))) this.#held.delete(key)
  }

  #isAbandoned(name: string, forgottenMs: number): boolean {
    if (OPEN.has(name)) return false
    const pid = Number(/^(\d+)-[0-9a-f]{16}$/.exec(name)?.[1] ?? NaN)
    if (!Number.isSafeInteger(pid)) return false
    const { mtimeMs } = statSync(this.#incoming(name), { throwIfNoEntry: false }) ?? { mtimeMs: Infinity }
    // Our own number: a process had it before. After so long, another process has the number of whichever it was.
    return pid === process.pid || !isAlive(pid) || Date.now() - mtimeMs > forgottenMs
  }

  async #sweepAll(): Promise<void> {
    try {
      while (this.#isAskedAgain) {
        this.#isAskedAgain = false
        await this.#sweepGone()
      }
    } finally {
      this.#sweeping = undefined
    }
  }

  async #sweepGone(): Promise<void> {
    for (;;) {
      const rows = await this.db.reader.all(`select key from verso_file_gone limit ${GONE_AT_ONCE}`)
      const keys = rows.map((row) => String(row['key']))
      if (keys.length === 0) return
      const emptied = new Set<string>()
      for (const key of keys) {
        for (const name of this.#incomingFolders()) removeSync(path.join(this.#incoming(name), key))
        if (removeSync(this.#placeOf(key))) emptied.add(path.dirname(this.#placeOf(key)))
      }
      // Before its name is forgotten: else it might be there again after a power cut, and nobody would know of it.
      for (const folder of emptied) syncFolder(folder)
      await this.db.transaction(async (tx) => {
        for (const key of keys) await tx.run('delete from verso_file_gone where key = ?', [key])
      })
    }
  }

  #moveIn(from: string, key: string): void {
    const place = this.#placeOf(key)
    makeFolder(path.dirname(place))
    try {
      renameSync(from, place)
    } catch (error) {
      // Moved or removed by somebody else.
      if (!isMissing(error)) throw error
    }
  }

  #makeOwnFolder(): void {
    const folder = this.#incoming(this.#own)
    if (existsSync(folder)) return
    makeFolder(folder)
    for (const parent of [path.dirname(folder), this.folder, path.dirname(this.folder)]) syncFolder(parent)
  }

  #incomingFolders(): string[] {
    try {
      return readdirSync(this.#incoming(''))
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }

  /** It may move from the second to the first while we look. */
  #placesOf(key: string): string[] {
    const arriving = this.#incomingFolders().map((name) => path.join(this.#incoming(name), key))
    return [this.#placeOf(key), ...arriving, this.#placeOf(key)]
  }

  #placeOf(key: string): string {
    return path.join(this.folder, key.slice(0, 2), key)
  }

  #arriving(key: string): string {
    return path.join(this.#incoming(this.#own), key)
  }

  #incoming(name: string): string {
    return path.join(this.folder, INCOMING, name)
  }
}

function keysIn(folder: string): string[] {
  return readdirSync(folder).filter((entry) => KEY.test(entry))
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Somebody else's process is one, too.
    return codeOf(error) === 'EPERM'
  }
}
