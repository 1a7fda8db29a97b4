// Uploads: writes received content to a file and measures and hashes it on the way. Also translates file system errors.
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { VersoError } from '../../errors.js'
import { SNIFF_BYTES } from '../../model/values/file-type.js'
import type { PendingBlob } from './database.js'

const DISK_FULL_CODES = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])
const NOT_WRITABLE_CODES = new Set(['EROFS', 'EACCES', 'EPERM'])

/** An upload without progress for this long is abandoned. */
export const UPLOAD_EXPIRY_MS = 60 * 60_000

/** The content of an abandoned upload was removed. */
export function createUploadExpiredError(): VersoError {
  return new VersoError('busy', 'The file that was sent is gone: send it again', { retryAfterS: 1 })
}

/** Writes the whole source to the file and resolves after the file is synced to disk. */
export async function writeUpload(
  handle: FileHandle,
  source: AsyncIterable<Uint8Array>,
  limitBytes: number,
): Promise<Omit<PendingBlob, 'key'>> {
  const digest = createHash('sha256')
  const head: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    if (size < SNIFF_BYTES) head.push(Uint8Array.from(chunk.subarray(0, SNIFF_BYTES - size)))
    size += chunk.length
    if (size > limitBytes)
      throw new VersoError('too-large', `The file is larger than ${limitBytes} bytes (--upload-limit)`)
    digest.update(chunk)
    await handle.writeFile(chunk)
  }
  await handle.sync()
  return { size, sha256: digest.digest('hex'), head: Buffer.concat(head) }
}

/** Translates a full disk to `storage-full` and returns every other error unchanged. */
export function translateFileError(error: unknown): unknown {
  if (!DISK_FULL_CODES.has(readErrorCode(error))) return error
  const details = { retryAfterS: 10, cause: error }
  return new VersoError('storage-full', 'The disk is full: nothing was written', details)
}

/** Translates an error from the folder for temporary files, which says nothing about the database. */
export function translateTemporaryError(error: unknown): unknown {
  if (!isNotWritable(error) && !isFileMissing(error)) return translateFileError(error)
  const message = 'The folder for temporary files cannot be written (TMPDIR): nothing was changed'
  return new VersoError('busy', message, { retryAfterS: 10, cause: error })
}

/** The disk failed, or someone changed the file: not a defect of the service. */
export function createUnreadableError(error: unknown): VersoError {
  const message = 'The content of the file cannot be read, or is not what was stored: nothing was changed'
  return new VersoError('busy', message, { retryAfterS: 10, cause: error })
}

/** True if the mode of the file or folder, or a read-only file system, permits no writes. */
export function isNotWritable(error: unknown): boolean {
  return NOT_WRITABLE_CODES.has(readErrorCode(error))
}

export function isFileMissing(error: unknown): boolean {
  return readErrorCode(error) === 'ENOENT'
}

export function readErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
