// SQLite reports a read-only file only on a write, so the file system is checked for write access.
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import path from 'node:path'

/** Never opens the file: closing it would release the locks of this process on it. */
export function canWriteDatabase(file: string): boolean {
  const sidecars = [`${file}-wal`, `${file}-shm`]
  const folder = path.dirname(path.resolve(file))
  return isWritablePath(file) && sidecars.every((each) => isWritablePath(existsSync(each) ? each : folder))
}

/** True if the file cannot be written and its WAL is empty, so that the file alone is the whole database. */
export function isImmutableFile(file: string): boolean {
  const wal = statSync(`${file}-wal`, { throwIfNoEntry: false })
  return (wal === undefined || wal.size === 0) && existsSync(file) && !canWriteDatabase(file)
}

function isWritablePath(target: string): boolean {
  try {
    accessSync(target, constants.W_OK)
    return true
  } catch {
    // The reason makes no difference: a mode, a read-only file system, a missing file.
    return false
  }
}
