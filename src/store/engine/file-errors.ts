// Classifies and translates errors of the file system.
import { VersoError } from '../../errors.js'

const DISK_FULL_CODES = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])
const NOT_WRITABLE_CODES = new Set(['EROFS', 'EACCES', 'EPERM'])

export const DISK_FULL_MESSAGE = 'The disk is full; nothing was changed'

export function createDiskFullError(cause?: unknown): VersoError {
  return new VersoError('storage-full', DISK_FULL_MESSAGE, {
    retryAfterS: 10,
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Translates a full disk to `storage-full` and returns every other error unchanged. */
export function translateFileError(error: unknown): unknown {
  return DISK_FULL_CODES.has(readErrorCode(error)) ? createDiskFullError(error) : error
}

/** Translates an error from the folder for temporary files, which says nothing about the database. */
export function translateTemporaryError(error: unknown): unknown {
  if (!isNotWritable(error) && !isFileMissing(error)) return translateFileError(error)
  const message = 'The folder for temporary files (TMPDIR) is not writable; nothing was changed'
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
