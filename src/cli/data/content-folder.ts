// File contents beside an export: files/<2 digits>/<sha256>. Equal contents are stored once.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { ConfigError } from '../../errors.js'
import type { FileMetadata } from '../../model/catalog/file-metadata.js'
import { detectContentType } from '../../model/values/file-type.js'
import { PRIVATE_FILE_MODE, makeFolder, syncFolder } from '../../store/engine/private-files.js'
import { isFileMissing } from '../../store/engine/file-errors.js'
import { writeUpload } from '../../store/engine/upload.js'

export const EXPORT_FAILED = 'The export failed; only the files that it has listed are complete'

/** Metadata of stored content; the name is known by the record only. */
export type ContentMetadata = Omit<FileMetadata, 'name'>

export class ContentFolder {
  readonly #folder: string

  /** `beside` is the folder that holds the data files. */
  constructor(beside: string) {
    this.#folder = path.join(beside, 'files')
  }

  /** Returns undefined if the content does not exist. */
  async open(sha256: string): Promise<Readable | undefined> {
    try {
      return (await open(this.#pathFor(sha256), 'r')).createReadStream()
    } catch (error) {
      if (isFileMissing(error)) return undefined
      throw error
    }
  }

  /**
   * Stores the content unless an intact copy exists; returns false if it cannot be opened. An existing copy is verified
   * by its hash.
   */
  async ensure(file: FileMetadata, openContent: () => Promise<Readable | undefined>): Promise<boolean> {
    if (await this.#isIntact(file)) return true
    const content = await openContent()
    if (!content) return false
    await this.put(content, file)
    return true
  }

  /** Writes to a temporary name and renames after fsync, so that a file named after a hash always has that hash. */
  async put(content: AsyncIterable<Uint8Array>, expected?: FileMetadata): Promise<ContentMetadata> {
    const unfinished = path.join(this.#folder, `${process.pid}.part`)
    this.#makeFolder(this.#folder)
    try {
      const handle = await open(unfinished, 'w', PRIVATE_FILE_MODE)
      const { size, sha256, head } = await writeUpload(handle, content, Infinity).finally(() =>
        handle.close(),
      )
      if (expected && expected.sha256 !== sha256)
        throw new ConfigError(EXPORT_FAILED, [
          `the stored content of "${expected.name}" is damaged: its SHA-256 is ${sha256}, not ${expected.sha256}`,
        ])
      const target = this.#pathFor(sha256)
      this.#makeFolder(path.dirname(target))
      await rename(unfinished, target)
      syncFolder(path.dirname(target))
      return { type: detectContentType(head), size, sha256 }
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => undefined)
      throw error
    }
  }

  async #isIntact({ sha256 }: FileMetadata): Promise<boolean> {
    const existing = await this.open(sha256)
    if (!existing) return false
    const digest = createHash('sha256')
    for await (const chunk of existing as AsyncIterable<Buffer>) digest.update(chunk)
    return digest.digest('hex') === sha256
  }

  #makeFolder(folder: string): void {
    if (existsSync(folder)) return
    makeFolder(folder)
    syncFolder(path.dirname(folder))
  }

  #pathFor(sha256: string): string {
    return path.join(this.#folder, sha256.slice(0, 2), sha256)
  }
}
