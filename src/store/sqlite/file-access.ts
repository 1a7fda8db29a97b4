// Whether a database file can be written, asked of the file system: SQLite itself says so only when something is written.
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import path from 'node:path'

/** Never opens the file: to close it again would take away the locks that this process has on it. */
export function canWriteDatabase(file: string): boolean {
  const sidecars = [`${file}-wal`, `${file}-shm`]
  const folder = path.dirname(path.resolve(file))
  return isWritablePath(file) && sidecars.every((each) => isWritablePath(existsSync(each) ? each : folder))
}

/** Nobody can write it here, and its WAL holds nothing: the file alone is the whole database. */
export function isImmutableFile(file: string): boolean {
  const wal = statSync(`${file}-wal`, { throwIfNoEntry: false })
  return (wal === undefined || wal.size === 0) && existsSync(file) && !canWriteDatabase(file)
}

function isWritablePath(target: string): boolean {
  try {
    accessSync(target, constants.W_OK)
    return true
  } catch {
    // A mode, a read-only file system, a file that is gone: the reason makes no difference here.
    return false
  }
}
