// Translates errors of SQLite, and retries while another process has locked the file.
import { setTimeout as sleep } from 'node:timers/promises'
import { VersoError } from '../../errors.js'
import { createUnwritableError, type UnwritableKind } from '../engine/write-health.js'
import { UniqueViolation } from '../engine/unique-violation.js'
import { createDiskFullError } from '../engine/file-errors.js'

/** How long a read or a short transaction waits for another process. */
export const BUSY_TIMEOUT_MS = 5_000
const BUSY_RETRY_MS = [1, 2, 5, 10, 20, 50] as const

const SQLITE_ERROR = 1
const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26
const SQLITE_CONSTRAINT_UNIQUE = 2067
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555
const SQLITE_IOERR_SHMSIZE = 4874

/** By the monotonic clock, because the clock of the machine may be set. */
export function computeBusyDeadline(): number {
  return performance.now() + BUSY_TIMEOUT_MS
}

/** Retries until no other process has locked the file, or the deadline has passed. Does not block the event loop. */
export async function retryWhileBusy<T>(deadline: number, attempt: () => T | Promise<T>): Promise<T> {
  for (let attempts = 0; ; attempts++) {
    try {
      return await attempt()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw translateSqliteError(error)
      await sleep(BUSY_RETRY_MS[Math.min(attempts, BUSY_RETRY_MS.length - 1)])
    }
  }
}

export function createBusyError(message: string, cause?: unknown): VersoError {
  return new VersoError('busy', message, { retryAfterS: 1, ...(cause === undefined ? {} : { cause }) })
}

export function createClosedError(): VersoError {
  return createBusyError('The database is closed; nothing was changed')
}

/** True if another process has locked the file. */
export function isBusy(error: unknown): boolean {
  return readPrimaryCode(error) === SQLITE_BUSY
}

/** True if the disk or the file caused the error, not the statement. Then the whole group must run again. */
export function isEngineError(error: unknown): boolean {
  return error instanceof VersoError && readSqliteCode(error.cause) !== undefined
}

// Errors of reading statements have no code.
const CODE_BY_MESSAGE: readonly (readonly [string, number])[] = [
  ['database or disk is full', SQLITE_FULL],
  ['database is locked', SQLITE_BUSY],
  ['disk I/O error', SQLITE_IOERR],
  ['database disk image is malformed', SQLITE_CORRUPT],
  ['malformed database schema', SQLITE_CORRUPT],
  // Parameters are always valid JSON, so a stored value must be damaged.
  ['malformed JSON', SQLITE_CORRUPT],
  ['file is not a database', SQLITE_NOTADB],
  ['attempt to write a readonly database', SQLITE_READONLY],
  ['unable to open database file', SQLITE_CANTOPEN],
]

/** By primary code, which is the low byte of an extended code. */
const UNWRITABLE_KIND_BY_CODE: Readonly<Record<number, UnwritableKind>> = {
  [SQLITE_FULL]: 'full',
  [SQLITE_READONLY]: 'read-only',
  [SQLITE_CORRUPT]: 'damaged',
  [SQLITE_NOTADB]: 'damaged',
}

function readSqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'ERR_SQLITE_ERROR') return undefined
  if ('errcode' in error && typeof error.errcode === 'number' && error.errcode !== SQLITE_ERROR)
    return error.errcode
  return CODE_BY_MESSAGE.find(([message]) => error.message.includes(message))?.[1]
}

/** Translates an error of SQLite to an error for clients. Returns other errors unchanged: those are defects and are logged. */
export function translateSqliteError(error: unknown): unknown {
  const code = readSqliteCode(error)
  if (code === undefined || !(error instanceof Error)) return error
  if (code === SQLITE_CONSTRAINT_UNIQUE || code === SQLITE_CONSTRAINT_PRIMARYKEY)
    return toUniqueViolation(error)
  if (code === SQLITE_FULL || code === SQLITE_IOERR_SHMSIZE) return createDiskFullError(error)
  if ((code & 0xff) === SQLITE_BUSY) {
    return new VersoError(
      'busy',
      'Another process has locked the database: retry after the seconds in Retry-After; nothing was changed',
      {
        retryAfterS: 1,
        cause: error,
      },
    )
  }
  if ((code & 0xff) === SQLITE_IOERR) {
    return new VersoError('busy', 'The disk has failed: read before you try again', {
      retryAfterS: 5,
      cause: error,
    })
  }
  if ((code & 0xff) === SQLITE_CANTOPEN) {
    return new VersoError('busy', 'The database file cannot be opened; nothing was changed', {
      retryAfterS: 5,
      cause: error,
    })
  }
  const unwritable = UNWRITABLE_KIND_BY_CODE[code & 0xff]
  return unwritable ? createUnwritableError(unwritable, error) : error
}

/** The reason to reject further writes after this error, if it is one. */
export function classifyUnwritable(error: unknown): UnwritableKind | undefined {
  if (isDiskFailure(error)) return 'failed'
  const code = readPrimaryCode(error)
  // The only other I/O error is a full disk.
  if (code === SQLITE_IOERR) return 'full'
  return code === undefined ? undefined : UNWRITABLE_KIND_BY_CODE[code]
}

/** `UNIQUE constraint failed: crm.Company.code, crm.Company.country` */
function toUniqueViolation(error: Error): UniqueViolation {
  const columns = error.message.replace(/^.*failed: /, '').split(', ')
  const names = columns.map((column) => column.slice(column.lastIndexOf('.') + 1))
  return new UniqueViolation(undefined, names, { cause: error })
}

/** True if the disk failed, so that the state in memory and on disk may differ. */
function isDiskFailure(error: unknown): boolean {
  return (
    readPrimaryCode(error) === SQLITE_IOERR && readSqliteCode(unwrapCause(error)) !== SQLITE_IOERR_SHMSIZE
  )
}

function readPrimaryCode(error: unknown): number | undefined {
  const code = readSqliteCode(unwrapCause(error))
  return code === undefined ? undefined : code & 0xff
}

function unwrapCause(error: unknown): unknown {
  return error instanceof VersoError ? error.cause : error
}
