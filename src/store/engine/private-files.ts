// What holds records is for the eyes of its owner only.
import { chmodSync, closeSync, openSync, statSync } from 'node:fs'
import { codeOf, isMissing } from './pending-blob.js'

export const PRIVATE_FILE = 0o600
export const PRIVATE_FOLDER = 0o700
/** For what holds no records: the umask narrows it. */
export const PUBLIC_FOLDER = 0o777
const FOR_OTHERS = 0o077

/**
 * Makes the database file if there is none, and takes from others what they may do with it and what lies beside it. SQLite gives its
 * `-wal` and `-shm` the mode of the file, so this comes before it opens anything.
 */
export function keepPrivate(file: string, onNarrowed: (file: string) => void = () => undefined): void {
  make(file)
  // Windows has no modes.
  if (process.platform === 'win32') return
  for (const each of [file, `${file}-wal`, `${file}-shm`]) narrow(each, PRIVATE_FILE, onNarrowed)
  narrow(`${file}.files`, PRIVATE_FOLDER, onNarrowed)
}

/** Never opens one that is there: to close it again would take away the locks that this process has on it. */
function make(file: string): void {
  try {
    closeSync(openSync(file, 'wx', PRIVATE_FILE))
  } catch (error) {
    // It is there, or cannot be made: that is for SQLite to say, which tries again.
    if (codeOf(error) === '') throw error
  }
}

function narrow(file: string, mode: number, onNarrowed: (file: string) => void): void {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (!stat || (stat.mode & FOR_OTHERS) === 0) return
  try {
    chmodSync(file, mode)
  } catch (error) {
    // Another process has closed the database, and has taken what lay beside it along. A read-only file system keeps its modes.
    if (isMissing(error) || codeOf(error) === 'EROFS') return
    throw error
  }
  onNarrowed(file)
}
