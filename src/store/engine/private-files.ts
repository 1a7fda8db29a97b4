// What holds records is for the eyes of its owner only.
import { chmodSync, closeSync, openSync, statSync } from 'node:fs'
import { readErrorCode, isFileMissing } from './pending-blob.js'

export const PRIVATE_FILE_MODE = 0o600
export const PRIVATE_FOLDER_MODE = 0o700
/** For what holds no records: the umask narrows it. */
export const PUBLIC_FOLDER_MODE = 0o777
const OTHERS_MODE_BITS = 0o077

/**
 * Makes the database file if there is none, and takes from others what they may do with it and what lies beside it. SQLite gives its
 * `-wal` and `-shm` the mode of the file, so this comes before it opens anything.
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

/** Never opens one that is there: to close it again would take away the locks that this process has on it. */
function createIfMissing(file: string): void {
  try {
    closeSync(openSync(file, 'wx', PRIVATE_FILE_MODE))
  } catch (error) {
    // It is there, or cannot be made: that is for SQLite to say, which tries again.
    if (readErrorCode(error) === '') throw error
  }
}

function narrowMode(file: string, mode: number, onNarrowed: (file: string) => void): void {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (!stat || (stat.mode & OTHERS_MODE_BITS) === 0) return
  try {
    chmodSync(file, mode)
  } catch (error) {
    // Another process has closed the database, and has taken what lay beside it along. A read-only file system keeps its modes.
    if (isFileMissing(error) || readErrorCode(error) === 'EROFS') return
    throw error
  }
  onNarrowed(file)
}
