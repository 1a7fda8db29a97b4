// Describes file-system errors in one sentence, so that a mistyped path prints no stack trace.
import { ConfigError } from '../errors.js'

const SYSTEM_ERROR_TEXTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of this path is a file, not a folder',
  EISDIR: 'this is a folder, not a file',
  EEXIST: 'this is there already',
  ENOTEMPTY: 'this folder is not empty',
  EACCES: 'the system does not permit this; choose another place, or ask for the permission',
  EPERM: 'the system does not permit this; choose another place, or ask for the permission',
  EROFS: 'the file system is read-only; choose another place',
  ENOSPC: 'the disk is full; make room, or choose another place',
  EDQUOT: 'your share of the disk is used up; make room, or choose another place',
  EFBIG: 'the file is larger than the file system permits',
  ENAMETOOLONG: 'the name is too long',
  ELOOP: 'the links on this path lead in a circle',
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
