// Files and folders: only the owner of the process can read files that contain records.
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { open, unlink, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { ConfigError } from '../../errors.js'
import { readErrorCode, isFileMissing, translateTemporaryError } from './file-errors.js'

export const PRIVATE_FILE_MODE = 0o600
export const PRIVATE_FOLDER_MODE = 0o700
/** For folders without records; the umask narrows it. */
export const PUBLIC_FOLDER_MODE = 0o777
const OTHERS_MODE_BITS = 0o077
/** As many as Linux follows. */
const MAX_LINKS = 40
const SQLITE_HEADER = 'SQLite format 3\0'

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
  if (isOpenToOthers(file)) requireSqliteFile(file)
  for (const each of [file, `${file}-wal`, `${file}-shm`]) narrowMode(each, PRIVATE_FILE_MODE, onNarrowed)
  narrowMode(`${file}.files`, PRIVATE_FOLDER_MODE, onNarrowed)
}

/**
 * Follows symbolic links, also to a file that is missing. SQLite keeps its other files beside the file that a link names, and so must this
 * service.
 */
export function followLinks(file: string): string {
  let current = file
  for (let links = 0; links < MAX_LINKS; links++) {
    const target = readLink(current)
    if (target === undefined) return current
    current = path.resolve(path.dirname(current), target)
  }
  // SQLite reports the loop.
  return file
}

function readLink(file: string): string | undefined {
  try {
    return readlinkSync(file)
  } catch {
    // It is no link, or it cannot be read: whoever opens the file reports that.
    return undefined
  }
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

/** A file that is not a database keeps its mode. Reads only a file that no process of Verso has open: closing it would release their locks. */
function requireSqliteFile(file: string): void {
  const stat = statSync(file)
  if (stat.isFile() && (stat.size === 0 || readStart(file) === SQLITE_HEADER)) return
  const what = stat.isDirectory() ? 'a folder' : 'not an SQLite database'
  throw new ConfigError('The database cannot be opened', [
    `sqlite:${file} is ${what}: check --db; nothing was changed`,
  ])
}

function readStart(file: string): string {
  const bytes = Buffer.alloc(SQLITE_HEADER.length)
  let descriptor: number
  try {
    descriptor = openSync(file, 'r')
  } catch (error) {
    // SQLite reports it.
    if (readErrorCode(error) === 'EACCES') return SQLITE_HEADER
    throw error
  }
  try {
    readSync(descriptor, bytes, 0, bytes.length, 0)
    return bytes.toString('latin1')
  } finally {
    closeSync(descriptor)
  }
}

function isOpenToOthers(file: string): boolean {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat !== undefined && (stat.mode & OTHERS_MODE_BITS) !== 0
}

function narrowMode(file: string, mode: number, onNarrowed: (file: string) => void): void {
  if (!isOpenToOthers(file)) return
  try {
    chmodSync(file, mode)
  } catch (error) {
    // Another process has closed the database and removed the sidecar files. A read-only file system keeps its modes.
    if (isFileMissing(error) || readErrorCode(error) === 'EROFS') return
    throw error
  }
  onNarrowed(file)
}

// Temporary files are unlinked after opening, so the system removes them when the process ends.

export async function openUnlinked(folder: string): Promise<FileHandle> {
  const file = createTemporaryPath(folder)
  try {
    const handle = await open(file, 'wx+', PRIVATE_FILE_MODE)
    try {
      await unlink(file)
    } catch (error) {
      await handle.close()
      throw error
    }
    return handle
  } catch (error) {
    throw translateTemporaryError(error)
  }
}

/** Returns a file descriptor. */
export function openUnlinkedSync(folder: string): number {
  const file = createTemporaryPath(folder)
  try {
    const descriptor = openSync(file, 'wx+', PRIVATE_FILE_MODE)
    try {
      unlinkSync(file)
    } catch (error) {
      closeSync(descriptor)
      throw error
    }
    return descriptor
  } catch (error) {
    throw translateTemporaryError(error)
  }
}

function createTemporaryPath(folder: string): string {
  return path.join(folder, `verso-${randomUUID()}`)
}

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
