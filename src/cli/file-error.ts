// Errors of the file system in words: people who mistype a path are shown a sentence, not a stack.
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

/** With the place that the error names. Undefined for an error that the system did not raise. */
export function describeFileError(error: unknown): string | undefined {
  if (!isSystemError(error)) return undefined
  const text = SYSTEM_ERROR_TEXTS[error.code]
  // A write to an open file does not name it.
  return text === undefined ? error.message : `${error.path ?? error.syscall}: ${text}`
}

/** Without the place, where the sentence begins with it already. */
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

/** The error to throw instead of one of the file system; every other error as it is. */
export function toFileConfigError(heading: string, error: unknown): unknown {
  const message = describeFileError(error)
  return message === undefined ? error : new ConfigError(heading, [message])
}
