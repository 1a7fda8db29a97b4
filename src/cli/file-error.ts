// Describes file-system errors in one sentence, so that a mistyped path prints no stack trace.
import { ConfigError } from '../errors.js'

const SYSTEM_ERROR_TEXTS: Readonly<Record<string, string>> = {
  ENOENT: 'the file or folder does not exist',
  ENOTDIR: 'part of this path is a file, not a folder',
  EISDIR: 'this is a folder, not a file',
  EEXIST: 'this exists already',
  ENOTEMPTY: 'this folder is not empty',
  EACCES: 'permission denied; choose another location, or change the permissions',
  EPERM: 'permission denied; choose another location, or change the permissions',
  EROFS: 'the file system is read-only; choose another location',
  ENOSPC: 'the disk is full; free some space, or choose another location',
  EDQUOT: 'your disk quota is exceeded; free some space, or choose another location',
  EFBIG: 'the file exceeds the maximum size of the file system',
  ENAMETOOLONG: 'the name is too long',
  ELOOP: 'the symbolic links of this path form a loop',
  EMFILE: 'too many files are open; raise the limit (ulimit -n)',
}

/** Describes the error with the path it names. Undefined for errors that are not system errors. */
export function describeFileError(error: unknown): string | undefined {
  if (!isSystemError(error)) return undefined
  const text = SYSTEM_ERROR_TEXTS[error.code]
  // An error of a write to an open file has no path.
  return text === undefined ? error.message : `${error.path ?? error.syscall}: ${text}`
}

/** Describes the error without its path, for messages that begin with the path. */
export function explainFileError(error: unknown): string | undefined {
  return isSystemError(error) ? (SYSTEM_ERROR_TEXTS[error.code] ?? error.message) : undefined
}

interface SystemError extends Error {
  readonly code: string
  readonly syscall: string
  readonly path?: string
}

function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && 'code' in error && 'syscall' in error
}

/** Wraps a system error in a ConfigError; returns any other error unchanged. */
export function toFileConfigError(heading: string, error: unknown): unknown {
  const message = describeFileError(error)
  return message === undefined ? error : new ConfigError(heading, [message])
}
