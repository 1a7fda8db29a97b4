// Keeps dropped content while backups read it. Each backup has a folder here and renews its time, because processes in other containers
// cannot see whether it still runs.
import { randomBytes } from 'node:crypto'
import { statSync, utimesSync } from 'node:fs'
import path from 'node:path'
import { isFileMissing, readErrorCode } from '../engine/file-errors.js'
import { makeFolder } from '../engine/private-files.js'
import { listEntries, removeFolderIfEmpty } from './blob-folder.js'

const RENEWAL_MS = 15_000
/** A backup that has not renewed its folder for this long counts as killed. If it continues, it fails at the first missing content. */
const RETENTION_EXPIRY_MS = 3 * 60_000

export class BlobRetentions {
  constructor(private readonly folder: string) {}

  /** Returns a function that ends the retention. */
  begin(): () => void {
    const own = path.join(this.folder, `${process.pid}-${randomBytes(8).toString('hex')}`)
    try {
      makeFolder(own)
    } catch (error) {
      // Nobody can remove content from a read-only file system.
      if (readErrorCode(error) === 'EROFS') return () => undefined
      throw error
    }
    const timer = setInterval(() => {
      renew(own)
    }, RENEWAL_MS)
    timer.unref()
    return () => {
      clearInterval(timer)
      removeFolderIfEmpty(own)
    }
  }

  isAnyActive(): boolean {
    let isActive = false
    for (const name of listEntries(this.folder)) {
      const each = path.join(this.folder, name)
      const { mtimeMs } = statSync(each, { throwIfNoEntry: false }) ?? { mtimeMs: 0 }
      if (Date.now() - mtimeMs < RETENTION_EXPIRY_MS) isActive = true
      else removeFolderIfEmpty(each)
    }
    return isActive
  }
}

function renew(folder: string): void {
  const now = new Date()
  try {
    utimesSync(folder, now, now)
  } catch (error) {
    // Another process has removed it as expired. The backup fails at the first missing content.
    if (!isFileMissing(error)) throw error
  }
}
