// What PostgreSQL, or the way to it, could not do, and what is told of it.
import pg from 'pg'
import { VersoError } from '../../errors.js'
import { createUnwritableError, type UnwritableKind } from '../engine/database-condition.js'

/** What the server itself said. A code alone does not tell: `EPIPE`, of a lost connection, has five letters too. */
export function isSqlError(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError
}

const DISK_FULL_STATES = new Set(['53100'])
const QUERY_CANCELED = '57014'
/** Many numbers and short texts: those are kept in the row itself, which has 8 KB. */
const PROGRAM_LIMIT_EXCEEDED = '54000'
const OVERLOADED_STATES = new Set(['53200', '53300', '53400', '55P03'])
/** Transactions that cannot write; a page or an index that is not as the server left it. */
const UNWRITABLE_KIND_BY_STATE: Readonly<Record<string, UnwritableKind>> = {
  '25006': 'read-only',
  XX001: 'damaged',
  XX002: 'damaged',
}
const RETRYABLE_STATES = new Set(['40001', '40P01'])

export function createPoolTimeoutError(cause?: unknown): VersoError {
  const message = 'No connection to the database was free in time: nothing was written'
  return new VersoError('busy', message, { retryAfterS: 1, cause })
}

/** What PostgreSQL, or the way to it, could not do. */
export class PostgresFailure extends Error {
  constructor(
    override readonly cause: unknown,
    private readonly stage: 'connecting' | 'running' | 'committing' = 'running',
  ) {
    super('a statement failed')
    this.name = 'Failure'
  }

  get #code(): string | undefined {
    return isSqlError(this.cause) ? this.cause.code : undefined
  }

  /** Whether the connection is gone, or in a state nobody knows. */
  get isConnectionLost(): boolean {
    const code = this.#code
    return code === undefined || code.startsWith('08') || code.startsWith('57P') || code === '25P03'
  }

  /** Why the database takes no writes, where the server has said so. */
  get unwritableKind(): UnwritableKind | undefined {
    return UNWRITABLE_KIND_BY_STATE[this.#code ?? '']
  }

  /** Whether another connection may do better. A read-only one may have been made before the server changed its role. */
  get isConnectionUnusable(): boolean {
    return this.isConnectionLost || this.unwritableKind === 'read-only'
  }

  /** Whether nobody knows if it was stored. */
  get isCommitUncertain(): boolean {
    return this.stage === 'committing'
  }

  /** A server that no longer answers: asking again would only wait again. */
  get #isTimeout(): boolean {
    return this.cause instanceof Error && this.cause.message === 'Query read timeout'
  }

  /** What the pool says, also where it was the server that did not answer. */
  get #isPoolTimeout(): boolean {
    return this.cause instanceof Error && this.cause.message === 'timeout exceeded when trying to connect'
  }

  /** Only while running: before, waiting again would take too long; after, the first try may have been committed. */
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
        'The database was lost while committing: read before you try again',
        details,
      )
    }
    if (this.#isPoolTimeout) return createPoolTimeoutError(this.cause)
    if (this.isConnectionLost)
      return new VersoError('busy', 'The database cannot be reached: nothing was written', details)
    if (this.unwritableKind) return createUnwritableError(this.unwritableKind, this.cause)
    if (code !== undefined && DISK_FULL_STATES.has(code)) {
      return new VersoError('storage-full', 'The disk is full: nothing was written', {
        ...details,
        retryAfterS: 10,
      })
    }
    if (code === PROGRAM_LIMIT_EXCEEDED)
      return new VersoError(
        'too-large',
        'The record is larger than PostgreSQL can keep in one row: nothing was written',
        details,
      )
    if (code === QUERY_CANCELED)
      return new VersoError(
        'busy',
        'It took longer than the time limit of a statement: nothing was written',
        details,
      )
    if (code !== undefined && (OVERLOADED_STATES.has(code) || RETRYABLE_STATES.has(code))) {
      return new VersoError('busy', 'The database is too busy: nothing was written', details)
    }
    return this.cause
  }
}
