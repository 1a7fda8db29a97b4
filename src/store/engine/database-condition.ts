// Why a database takes no writes. Both engines keep one, for all connections of the process.
import { Refusal } from '../../errors.js'

/** From the least to the worst: a worse one takes the place of another, and stays until a restart. */
const TROUBLES = ['read-only', 'damaged', 'failed'] as const

export type WriteTrouble = (typeof TROUBLES)[number]

/** For clients and for `/readyz`: the answer to a write, and to a read that met the trouble itself. */
const REASONS: Readonly<Record<WriteTrouble, string>> = {
  'read-only': 'The database is read-only: nothing was changed',
  damaged: 'The database is damaged: the request was not carried out, and nothing was changed',
  failed: 'The database file has failed or is gone, restart the service: read before you try again',
}

/** The reason for a read-only file that has become writable, where the process cannot make use of it. */
export const RESTART =
  'The database file could not be written when it was opened, and can be now. Restart the service: nothing was changed'

/** Nobody mends these within a second. */
const RETRY_AFTER_S = 10

export interface Unwritable {
  readonly trouble: WriteTrouble
  readonly reason: string
}

/** Told once when writes begin to be refused, or refused for a worse reason; with undefined once they are taken again. */
export type OnCondition = (unwritable: Unwritable | undefined, error?: unknown) => void

export function refusalFor(trouble: WriteTrouble, cause?: unknown): Refusal {
  return new Refusal('busy', REASONS[trouble], {
    retryAfterS: RETRY_AFTER_S,
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The reason, if the error is a refusal because of one of these. */
export function reasonIn(error: unknown): string | undefined {
  if (!(error instanceof Refusal)) return undefined
  return Object.values(REASONS).find((reason) => reason === error.message)
}

export class Condition {
  #unwritable: Unwritable | undefined

  constructor(private readonly onChange: OnCondition = () => undefined) {}

  get unwritable(): Unwritable | undefined {
    return this.#unwritable
  }

  note(trouble: WriteTrouble, error?: unknown, reason?: string): void {
    const known = this.#unwritable
    if (known && TROUBLES.indexOf(known.trouble) > TROUBLES.indexOf(trouble)) return
    if (known?.trouble === trouble && (reason ?? known.reason) === known.reason) return
    this.#unwritable = { trouble, reason: reason ?? REASONS[trouble] }
    this.onChange(this.#unwritable, error)
  }

  /** Only a read-only database becomes writable again by itself. */
  clearReadOnly(): void {
    if (this.#unwritable?.trouble !== 'read-only') return
    this.#unwritable = undefined
    this.onChange(undefined)
  }

  /** Refuses what would be lost, or would make damage worse. A read-only database refuses by itself what it cannot do. */
  requireSound(): void {
    const known = this.#unwritable
    if (known && known.trouble !== 'read-only') throw refusalFor(known.trouble)
  }
}

/** Text that the service has stored as JSON. If it is none any more, the page that holds it was changed beside the database. */
export function parseStored(text: unknown): unknown {
  try {
    return JSON.parse(String(text)) as unknown
  } catch (error) {
    throw refusalFor('damaged', error)
  }
}
