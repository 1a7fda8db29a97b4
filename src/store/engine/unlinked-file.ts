// Temporary files that only this process can access. They are unlinked after opening, so the system removes them when the process ends.
import { randomUUID } from 'node:crypto'
import { openSync, unlinkSync } from 'node:fs'
import { open, unlink, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { translateTemporaryError } from './file-errors.js'
import { PRIVATE_FILE_MODE } from './private-files.js'

export async function openUnlinked(folder: string): Promise<FileHandle> {
  const file = createTemporaryPath(folder)
  try {
    const handle = await open(file, 'wx+', PRIVATE_FILE_MODE)
    await unlink(file)
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
    unlinkSync(file)
    return descriptor
  } catch (error) {
    throw translateTemporaryError(error)
  }
}

function createTemporaryPath(folder: string): string {
  return path.join(folder, `verso-${randomUUID()}`)
}
