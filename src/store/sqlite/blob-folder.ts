import { readdirSync, rmdirSync, unlinkSync } from 'node:fs'
import { isFileMissing, readErrorCode } from '../engine/file-errors.js'

export function removeFolderIfEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch (error) {
    // A read-only file system reports EROFS even if the folder does not exist.
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EROFS'].includes(readErrorCode(error))) throw error
  }
}

/** Returns true if the file existed. */
export function unlinkIfExists(file: string): boolean {
  try {
    unlinkSync(file)
    return true
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(readErrorCode(error))) return false
    throw error
  }
}

/** Empty for a folder that does not exist. */
export function listEntries(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (isFileMissing(error)) return []
    throw error
  }
}

const BLOB_KEY = /^[0-9a-f]{32}$/

export function listKeys(folder: string): string[] {
  return readdirSync(folder).filter((entry) => BLOB_KEY.test(entry))
}
