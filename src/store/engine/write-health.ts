// The write health of a database. Each engine has one state for all connections of the process.
import { VersoError } from '../../errors.js'
import { createDiskFullError, DISK_FULL_MESSAGE } from './file-errors.js'

/** In order of severity. A more severe kind replaces a lesser one. */
const UNWRITABLE_KINDS = ['full', 'no-connections', 'read-only', 'silent', 'damaged', 'failed'] as const

export type UnwritableKind = (typeof UNWRITABLE_KINDS)[number]

/** The others remain until a restart. */
export type TransientUnwritableKind = Exclude<UnwritableKind, 'damaged' | 'failed'>

/** Messages for clients and for `/readyz`: for rejected writes, and for reads that hit the problem themselves. */
const UNWRITABLE_REASONS: Readonly<Record<UnwritableKind, string>> = {
  full: DISK_FULL_MESSAGE,
  'no-connections': 'The database accepts no more connections; nothing was changed',
  silent: 'The database does not respond; nothing was changed',
  'read-only': 'The database is read-only; nothing was changed',
  damaged: 'The database is damaged: the request was not executed; nothing was changed',
  failed: 'The database file has failed or was removed. Restart the service; read before you try again',
}

/** For a read-only file that has become writable while the process cannot reopen it. */
export const RESTART_REASON =
  'The database file was read-only when the service opened it, and is writable now. Restart the service; nothing was changed'

/** An operator must repair the other problems, so clients should wait longer than usual. */
const RETRY_AFTER_S: Readonly<Partial<Record<UnwritableKind, number>>> = { 'no-connections': 1, silent: 1 }
const LONG_RETRY_AFTER_S = 10

/** Databases with these problems reject writes themselves, if they must. */
const ADMITTED_KINDS: ReadonlySet<UnwritableKind> = new Set(['no-connections', 'read-only'])

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
  if (kind === 'full') return createDiskFullError(cause)
  return new VersoError('busy', UNWRITABLE_REASONS[kind], {
    retryAfterS: RETRY_AFTER_S[kind] ?? LONG_RETRY_AFTER_S,
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The kind and the reason, if the error was made by `createUnwritableError`. */
export function findUnwritable(error: unknown): UnwritableState | undefined {
  if (!(error instanceof VersoError)) return undefined
  const kind = UNWRITABLE_KINDS.find((each) => UNWRITABLE_REASONS[each] === error.message)
  return kind && { kind, reason: UNWRITABLE_REASONS[kind] }
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

  clear(kind: TransientUnwritableKind): void {
    if (this.unwritable?.kind !== kind) return
    this.unwritable = undefined
    this.onChange(undefined)
  }

  /** Rejects writes that would be lost, wait in vain, increase damage, or take the room of a full disk. */
  requireHealthy(mayUseFullDisk: boolean): void {
    const current = this.unwritable
    if (!current || ADMITTED_KINDS.has(current.kind) || (current.kind === 'full' && mayUseFullDisk)) return
    throw createUnwritableError(current.kind)
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
