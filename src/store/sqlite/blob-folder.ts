import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, rmdirSync, unlinkSync } from 'node:fs'
import path from 'node:path'
import { PRIVATE_FOLDER_MODE } from '../engine/private-files.js'
import { readErrorCode } from '../engine/file-errors.js'

/**
 * Creates the folder and its parents, private by default. Not with `recursive: true`: where the system permits no folders, such as below
 * `/proc`, Node 20 then retries forever.
 */
export function makeFolder(folder: string, mode = PRIVATE_FOLDER_MODE): void {
  if (existsSync(folder)) return
  makeFolder(path.dirname(folder), mode)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!existsSync(folder)) throw error
  }
}

/** Makes added and removed entries of the folder survive a power cut. */
export function syncFolder(folder: string): void {
  // Windows cannot open folders, and syncs them itself.
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

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
