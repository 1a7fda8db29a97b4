// Writes a backup to a file that appears under its name only when it is complete.
import { existsSync, statSync } from 'node:fs'
import { open, rename, rm, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { ConfigError } from '../../errors.js'
import type { Database } from '../../store/engine/database.js'
import { PRIVATE_FILE_MODE, syncFolder } from '../../store/engine/private-files.js'
import type { BackupSink } from './backup-format.js'
import { BACKUP_FAILED, writeBackup, type BackupOptions, type WrittenBackup } from './backup.js'

const SYNC_BYTES = 1024 * 1024

/** The file has the name with `.part` until it is complete. A killed backup does not remove that file; the next one replaces it. */
export async function writeBackupFile(
  db: Database,
  file: string,
  options: Omit<BackupOptions, 'sink'>,
): Promise<WrittenBackup> {
  requireFreeName(file)
  const unfinished = `${file}.part`
  await rm(unfinished, { force: true })
  const handle = await open(unfinished, 'wx', PRIVATE_FILE_MODE)
  const { ino } = await handle.stat()
  try {
    const written = await writeBackup(db, { ...options, sink: createSyncingSink(handle) })
    await handle.sync()
    if (statSync(unfinished, { throwIfNoEntry: false })?.ino !== ino)
      throw new ConfigError(BACKUP_FAILED, [`${file}: another backup writes to this name; name another file`])
    requireFreeName(file)
    await rename(unfinished, file)
    syncFolder(path.dirname(path.resolve(file)))
    return written
  } catch (error) {
    if (statSync(unfinished, { throwIfNoEntry: false })?.ino === ino) await rm(unfinished, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

function requireFreeName(file: string): void {
  if (existsSync(file))
    throw new ConfigError(BACKUP_FAILED, [
      `${file} exists already, and a backup never replaces a file: name another file, or remove this one first`,
    ])
}

/** Syncs the file often: one sync of a large file occupies the disk for long, and the commits of the service wait for it. */
function createSyncingSink(handle: FileHandle): BackupSink {
  let unsyncedBytes = 0
  return async (bytes) => {
    await writeFully(handle, bytes)
    unsyncedBytes += bytes.length
    if (unsyncedBytes < SYNC_BYTES) return
    await handle.datasync()
    unsyncedBytes = 0
  }
}

async function writeFully(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, offset)
    offset += bytesWritten
  }
}
