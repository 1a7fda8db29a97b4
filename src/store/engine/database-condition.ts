// Why a database takes no writes. Both engines keep one, for all connections of the process.
import { VersoError } from '../../errors.js'

/** From the least to the worst: a worse one takes the place of another, and stays until a restart. */
const UNWRITABLE_KINDS = ['read-only', 'damaged', 'failed'] as const

export type UnwritableKind = (typeof UNWRITABLE_KINDS)[number]

/** For clients and for `/readyz`: the answer to a write, and to a read that met the trouble itself. */
const UNWRITABLE_REASONS: Readonly<Record<UnwritableKind, string>> = {
  'read-only': 'The database is read-only: nothing was changed',
  damaged: 'The database is damaged: the request was not carried out, and nothing was changed',
  failed: 'The database file has failed or is gone, restart the service: read before you try again',
}

/** The reason for a read-only file that has become writable, where the process cannot make use of it. */
export const RESTART_REASON =
  'The database file could not be written when it was opened, and can be now. Restart the service: nothing was changed'

/** Nobody mends these within a second. */
const RETRY_AFTER_S = 10

export interface UnwritableState {
  readonly kind: UnwritableKind
  readonly reason: string
}

/** Told once when writes begin to be refused, or refused for a worse reason; with undefined once they are taken again. */
export type OnWriteHealthChange = (unwritable: UnwritableState | undefined, error?: unknown) => void

export function createUnwritableError(kind: UnwritableKind, cause?: unknown): VersoError {
  return new VersoError('busy', UNWRITABLE_REASONS[kind], {
    retryAfterS: RETRY_AFTER_S,
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The reason, if the error is a refusal because of one of these. */
export function findUnwritableReason(error: unknown): string | undefined {
  if (!(error instanceof VersoError)) return undefined
  return Object.values(UNWRITABLE_REASONS).find((reason) => reason === error.message)
}

export class WriteHealth {
  #unwritable: UnwritableState | undefined

  constructor(private readonly onChange: OnWriteHealthChange = () => undefined) {}

  get unwritable(): UnwritableState | undefined {
    return this.#unwritable
  }

  report(kind: UnwritableKind, error?: unknown, reason?: string): void {
    const known = this.#unwritable
    if (known && UNWRITABLE_KINDS.indexOf(known.kind) > UNWRITABLE_KINDS.indexOf(kind)) return
    if (known?.kind === kind && (reason ?? known.reason) === known.reason) return
    this.#unwritable = { kind, reason: reason ?? UNWRITABLE_REASONS[kind] }
    this.onChange(this.#unwritable, error)
  }

  /** Only a read-only database becomes writable again by itself. */
  clearReadOnly(): void {
    if (this.#unwritable?.kind !== 'read-only') return
    this.#unwritable = undefined
    this.onChange(undefined)
  }

  /** Refuses what would be lost, or would make damage worse. A read-only database refuses by itself what it cannot do. */
  requireHealthy(): void {
    const known = this.#unwritable
    if (known && known.kind !== 'read-only') throw createUnwritableError(known.kind)
  }
}

/** Text that the service has stored as JSON. If it is none any more, the page that holds it was changed beside the database. */
export function parseStoredJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text)) as unknown
  } catch (error) {
    throw createUnwritableError('damaged', error)
  }
}
