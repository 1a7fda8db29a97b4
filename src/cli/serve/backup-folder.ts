// The folder of scheduled backups. Only a verified backup has the suffix `.backup`; its name begins with its time, so names sort by time.
import { access, constants, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ConfigError, summarizeError } from '../../errors.js'
import { isFileMissing } from '../../store/engine/file-errors.js'
import { makeFolder, PRIVATE_FILE_MODE, syncFolder } from '../../store/engine/private-files.js'

const VERIFIED = /^verso-\d{8}T\d{9}Z\.backup$/
const UNVERIFIED = /^verso-\d{8}T\d{9}Z\.unverified$/
/** The id of the database whose backups are in the folder. */
const OWNER = 'database-id'
/** Files and folders of a killed run. */
const LEFTOVER = /^(verso-\d{8}T\d{9}Z\.unverified\.part|verify-.{6})$/

const ANOTHER_DATABASE = 'it has backups of another database: name a folder of its own for each database'

function isAnother(owner: number | undefined, databaseId: number | undefined): boolean {
  return owner !== undefined && databaseId !== undefined && owner !== databaseId
}

export class BackupFolder {
  constructor(readonly path: string) {}

  /** Creates the folder, and removes the files of a killed run. Fails if the folder has backups of another database. */
  async prepare(databaseId: number | undefined): Promise<void> {
    makeFolder(this.path)
    const owner = await this.#readOwner()
    if (databaseId !== undefined && owner === undefined)
      await writeFile(path.join(this.path, OWNER), `${databaseId}\n`, {
        mode: PRIVATE_FILE_MODE,
        flush: true,
      })
    if (isAnother(owner, databaseId)) throw new ConfigError('The backup was not made', [ANOTHER_DATABASE])
    for (const name of await readdir(this.path)) if (LEFTOVER.test(name)) await this.#remove(name)
  }

  /** Creates the folder if it is missing. Returns the reason if it cannot be used. The disk of the folder must not hold up the event loop. */
  async findProblem(databaseId: number | undefined): Promise<string | undefined> {
    try {
      await access(`${this.path}/.`, constants.W_OK).catch((error: unknown) => {
        if (!isFileMissing(error)) throw error
        makeFolder(this.path)
      })
      return isAnother(await this.#readOwner(), databaseId) ? ANOTHER_DATABASE : undefined
    } catch (error) {
      return summarizeError(error).reason
    }
  }

  async #readOwner(): Promise<number | undefined> {
    try {
      const owner = Number(await readFile(path.join(this.path, OWNER), 'utf8'))
      // A process that was killed may have left an empty file.
      return Number.isSafeInteger(owner) && owner > 0 ? owner : undefined
    } catch (error) {
      if (isFileMissing(error)) return undefined
      throw error
    }
  }

  /** The file of a backup that was not verified yet. */
  nameUnverified(nowMs: number): string {
    const time = new Date(nowMs).toISOString().replace(/[-:.]/g, '')
    return path.join(this.path, `verso-${time}.unverified`)
  }

  async createRestoreFolder(): Promise<string> {
    return mkdtemp(path.join(this.path, 'verify-'))
  }

  /** Returns the new name. It survives a power cut, because older backups are deleted then. */
  async markVerified(file: string): Promise<string> {
    const verified = file.replace(/\.unverified$/, '.backup')
    await rename(file, verified)
    syncFolder(this.path)
    return verified
  }

  /** Deletes verified backups beyond the last ones. `newest` stays, although a clock that was ahead has given later names to others. */
  async prune(keep: number, newest: string): Promise<readonly string[]> {
    return this.#removeAllBut(keep, await this.#listOldestFirst(VERIFIED, newest))
  }

  /**
   * Deletes all unverified backups but the newest, which is `newest` if that file exists. It may be good, because a check also fails on a
   * full disk.
   */
  async pruneUnverified(newest: string): Promise<void> {
    await this.#removeAllBut(1, await this.#listOldestFirst(UNVERIFIED, newest))
  }

  async #listOldestFirst(pattern: RegExp, newest: string): Promise<string[]> {
    const isNewest = (name: string) => Number(name === path.basename(newest))
    const names = (await readdir(this.path)).filter((name) => pattern.test(name)).sort()
    return names.sort((a, b) => isNewest(a) - isNewest(b))
  }

  async #removeAllBut(keep: number, names: readonly string[]): Promise<readonly string[]> {
    const removed = names.slice(0, -Math.max(keep, 1))
    for (const name of removed) await this.#remove(name)
    return removed
  }

  async #remove(name: string): Promise<void> {
    await rm(path.join(this.path, name), { recursive: true, force: true })
  }
}
