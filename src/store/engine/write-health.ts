// The write health of a database. Each engine has one state for all connections of the process.
import { VersoError } from '../../errors.js'

/** In order of severity. A more severe kind replaces a lesser one. Only `read-only` can end without a restart. */
const UNWRITABLE_KINDS = ['read-only', 'damaged', 'failed'] as const

export type UnwritableKind = (typeof UNWRITABLE_KINDS)[number]

/** Messages for clients and for `/readyz`: for rejected writes, and for reads that hit the problem themselves. */
const UNWRITABLE_REASONS: Readonly<Record<UnwritableKind, string>> = {
  'read-only': 'The database is read-only; nothing was changed',
  damaged: 'The database is damaged: the request was not executed; nothing was changed',
  failed: 'The database file has failed or was removed. Restart the service; read before you try again',
}

/** For a read-only file that has become writable while the process cannot reopen it. */
export const RESTART_REASON =
  'The database file was read-only when the service opened it, and is writable now. Restart the service; nothing was changed'

/** An operator must repair these problems, so clients should wait longer than usual. */
const RETRY_AFTER_S = 10

export interface UnwritableState {
  readonly kind: UnwritableKind
  readonly reason: string
}

/**
 * Called once when the database starts to reject writes, and when a more severe reason replaces the last one. Called with undefined when the
 * database accepts writes again.
 */
export type OnWriteHealthChange = (unwritable: UnwritableState | undefined, error?: unknown) => void

export function createUnwritableError(kind: UnwritableKind, cause?: unknown): VersoError {
  return new VersoError('busy', UNWRITABLE_REASONS[kind], {
    retryAfterS: RETRY_AFTER_S,
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The reason, if the error was made by `createUnwritableError`. */
export function findUnwritableReason(error: unknown): string | undefined {
  if (!(error instanceof VersoError)) return undefined
  return Object.values(UNWRITABLE_REASONS).find((reason) => reason === error.message)
}

export class WriteHealth {
  /** Why the database rejects writes. Only this class sets it. */
  unwritable: UnwritableState | undefined

  constructor(private readonly onChange: OnWriteHealthChange = () => undefined) {}

  report(kind: UnwritableKind, error?: unknown, reason?: string): void {
    const current = this.unwritable
    if (current && UNWRITABLE_KINDS.indexOf(current.kind) > UNWRITABLE_KINDS.indexOf(kind)) return
    if (current?.kind === kind && (reason ?? current.reason) === current.reason) return
    this.unwritable = { kind, reason: reason ?? UNWRITABLE_REASONS[kind] }
    this.onChange(this.unwritable, error)
  }

  /** Damage and failures remain until a restart. */
  clearReadOnly(): void {
    if (this.unwritable?.kind !== 'read-only') return
    this.unwritable = undefined
    this.onChange(undefined)
  }

  /** Rejects writes that would be lost or increase damage. A read-only database rejects writes itself. */
  requireHealthy(): void {
    const current = this.unwritable
    if (current && current.kind !== 'read-only') throw createUnwritableError(current.kind)
  }
}

/** Parses text that the service stored as JSON. Invalid JSON means that something other than the database changed the page. */
export function parseStoredJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text)) as unknown
  } catch (error) {
    throw createUnwritableError('damaged', error)
  }
}
