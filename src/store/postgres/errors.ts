// Classifies errors of PostgreSQL and of the connection to it, and translates them for clients.
import pg from 'pg'
import { VersoError } from '../../errors.js'
import { createUnwritableError, type UnwritableKind } from '../engine/write-health.js'

/** True if the server reported the error. The code alone is ambiguous: `EPIPE`, of a lost connection, has five letters, too. */
export function isSqlError(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError
}

const QUERY_CANCELED = '57014'
/** The row is too large. Numbers and short texts are stored in the row itself, which has at most 8 KB. */
const PROGRAM_LIMIT_EXCEEDED = '54000'
export const TOO_MANY_CONNECTIONS = '53300'
const OVERLOADED_STATES = new Set(['53200', '53400', '55P03'])
/** A full disk; a read-only transaction; a damaged page or index. */
const UNWRITABLE_KIND_BY_STATE: Readonly<Record<string, UnwritableKind>> = {
  [TOO_MANY_CONNECTIONS]: 'no-connections',
  '53100': 'full',
  '25006': 'read-only',
  XX001: 'damaged',
  XX002: 'damaged',
}
const RETRYABLE_STATES = new Set(['40001', '40P01'])

export function createPoolTimeoutError(): VersoError {
  const message =
    'No database connection was free in time: retry after the seconds in Retry-After; nothing was changed'
  return new VersoError('busy', message, { retryAfterS: 1 })
}

/** A failed statement, connection attempt or commit. */
export class PostgresFailure extends Error {
  constructor(
    override readonly cause: unknown,
    private readonly stage: 'connecting' | 'running' | 'committing' = 'running',
  ) {
    super('a statement failed')
    this.name = 'PostgresFailure'
  }

  get #code(): string | undefined {
    return isSqlError(this.cause) ? this.cause.code : undefined
  }

  /** True if the connection is lost or in an unknown state. */
  get isConnectionLost(): boolean {
    const code = this.#code
    return code === undefined || code.startsWith('08') || code.startsWith('57P') || code === '25P03'
  }

  /** Why the database rejects writes, if the server reported a reason. */
  get unwritableKind(): UnwritableKind | undefined {
    return UNWRITABLE_KIND_BY_STATE[this.#code ?? '']
  }

  /** True if another connection may succeed. A read-only connection may be older than the promotion of the server. */
  get isConnectionUnusable(): boolean {
    return this.isConnectionLost || this.unwritableKind === 'read-only'
  }

  /** True if the role lacks a privilege. */
  get isForbidden(): boolean {
    return this.#code === '42501'
  }

  get isConnecting(): boolean {
    return this.stage === 'connecting'
  }

  /** True if it is unknown whether the transaction was committed. */
  get isCommitUncertain(): boolean {
    return this.stage === 'committing'
  }

  /** True if the server did not respond. A retry would only wait again. */
  get #isTimeout(): boolean {
    return this.cause instanceof Error && this.cause.message === 'Query read timeout'
  }

  /** Only errors of a running statement: a second wait for a connection takes too long, and a failed COMMIT may have succeeded. */
  get canRetry(): boolean {
    return (
      this.stage === 'running' &&
      !this.#isTimeout &&
      (this.isConnectionLost || RETRYABLE_STATES.has(this.#code ?? ''))
    )
  }

  translate(): unknown {
    const code = this.#code
    const details = { retryAfterS: 1, cause: this.cause }
    if (this.stage === 'committing') {
      return new VersoError(
        'busy',
        'The database connection was lost during the commit, which may have succeeded: read before you try again',
        details,
      )
    }
    if (this.isConnectionLost)
      return new VersoError('busy', 'The database cannot be reached; nothing was changed', details)
    if (this.unwritableKind) return createUnwritableError(this.unwritableKind, this.cause)
    if (code === PROGRAM_LIMIT_EXCEEDED)
      return new VersoError(
        'too-large',
        'The record is larger than a row of PostgreSQL can be; nothing was changed',
        details,
      )
    if (code === QUERY_CANCELED)
      return new VersoError(
        'busy',
        'A statement exceeded its time limit (--statement-timeout); nothing was changed',
        details,
      )
    if (code !== undefined && (OVERLOADED_STATES.has(code) || RETRYABLE_STATES.has(code))) {
      return new VersoError(
        'busy',
        'The database is overloaded: retry after the seconds in Retry-After; nothing was changed',
        details,
      )
    }
    return this.cause
  }
}
