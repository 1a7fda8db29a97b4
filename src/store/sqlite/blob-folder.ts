import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, rmdirSync, unlinkSync } from 'node:fs'
import path from 'node:path'
import { PRIVATE_FOLDER_MODE } from '../engine/private-files.js'
import { readErrorCode } from '../engine/pending-blob.js'

/** For our eyes only, unless another mode is named. Not `recursive: true`: with it Node 20 tries for ever where the system makes no folders, below /proc for one. */
export function makeFolder(folder: string, mode = PRIVATE_FOLDER_MODE): void {
  if (existsSync(folder)) return
  makeFolder(path.dirname(folder), mode)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    // Another process was faster.
    if (!existsSync(folder)) throw error
  }
}

/** What was put into the folder, or taken from it, is so after a power cut, too. */
export function syncFolder(folder: string): void {
  // Windows opens no folders, and does this by itself.
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
    // A read-only file system says so before it looks whether the folder is there.
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EROFS'].includes(readErrorCode(error))) throw error
  }
}

/** Whether it was there. */
export function unlinkIfExists(file: string): boolean {
  try {
    unlinkSync(file)
    return true
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(readErrorCode(error))) return false
    throw error
  }
}
