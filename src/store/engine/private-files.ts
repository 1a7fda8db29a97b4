// File modes: only the owner of the process can read files that contain records.
import { chmodSync, closeSync, openSync, statSync } from 'node:fs'
import { readErrorCode, isFileMissing } from './file-errors.js'

export const PRIVATE_FILE_MODE = 0o600
export const PRIVATE_FOLDER_MODE = 0o700
/** For folders without records; the umask narrows it. */
export const PUBLIC_FOLDER_MODE = 0o777
const OTHERS_MODE_BITS = 0o077

/**
 * Creates the database file if it is missing, and removes the permissions of other users from it and its sidecar files. SQLite gives `-wal`
 * and `-shm` the mode of the file, so this must run before SQLite opens it.
 */
export function makeDatabasePrivate(
  file: string,
  onNarrowed: (file: string) => void = () => undefined,
): void {
  createIfMissing(file)
  // Windows has no modes.
  if (process.platform === 'win32') return
  for (const each of [file, `${file}-wal`, `${file}-shm`]) narrowMode(each, PRIVATE_FILE_MODE, onNarrowed)
  narrowMode(`${file}.files`, PRIVATE_FOLDER_MODE, onNarrowed)
}

/** Never opens an existing file: closing it would release the locks of this process on it. */
function createIfMissing(file: string): void {
  try {
    closeSync(openSync(file, 'wx', PRIVATE_FILE_MODE))
  } catch (error) {
    // The file exists or cannot be created. In the second case SQLite reports the error when it opens the file.
    if (readErrorCode(error) === '') throw error
  }
}

function narrowMode(file: string, mode: number, onNarrowed: (file: string) => void): void {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (!stat || (stat.mode & OTHERS_MODE_BITS) === 0) return
  try {
    chmodSync(file, mode)
  } catch (error) {
    // Another process has closed the database and removed the sidecar files. A read-only file system keeps its modes.
    if (isFileMissing(error) || readErrorCode(error) === 'EROFS') return
    throw error
  }
  onNarrowed(file)
}
