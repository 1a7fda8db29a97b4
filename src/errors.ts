/** The closed list of error kinds. `http/route/error-status.ts` maps each kind to its HTTP status, and each kind has a test. */
export const ERROR_KINDS = [
  'bad-request',
  'unauthenticated',
  'forbidden',
  'unknown-model',
  'not-found',
  'method',
  'media-type',
  'too-large',
  'range',
  'misdirected',
  'conflict',
  'not-unique',
  'still-referenced',
  'stale-match',
  'gone',
  'invalid',
  'key-reused',
  'too-many',
  'hook-failed',
  'busy',
  'storage-full',
] as const

export type ErrorKind = (typeof ERROR_KINDS)[number]

export interface ErrorDetails {
  /** All field errors by field name. */
  readonly errors?: Readonly<Record<string, string>>
  /** Details for the client; part of the response. */
  readonly data?: Readonly<Record<string, unknown>>
  /** The path of the record in a request that writes several, such as `records[1].` Not part of the response by itself. */
  readonly path?: string
  /** True if other records of the request may have errors, too: the write ended before they were checked. Not part of the response. */
  readonly isPartial?: boolean
  /** Seconds after which a retry may succeed. */
  readonly retryAfterS?: number
  /** The size of a file, for a range that is beyond its end. */
  readonly fileSize?: number
  /** The allowed HTTP methods. */
  readonly allow?: readonly string[]
  readonly cause?: unknown
}

/** The hook in which an error arose. */
export interface ErrorOrigin {
  /** Such as `shop.Order.beforeSave`. */
  readonly hook: string
  /** True if the hook itself has thrown the error; false if a call of its records, or a value that it returned, has failed. */
  readonly isThrown: boolean
}

export class VersoError extends Error {
  /** For the log of the service. Not part of the response. */
  declare origin?: ErrorOrigin

  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly details: ErrorDetails = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'VersoError'
  }
}

/** Returns the error for the server log: the cause of a VersoError if it has one, any other error unchanged. */
export function unwrapLoggedCause(error: unknown): unknown {
  return error instanceof VersoError ? (error.cause ?? error) : error
}

/** Reduces an error of a driver or the system for the server log: such an error may reference a whole connection. */
export function summarizeError(error: unknown): { readonly code?: unknown; readonly reason: string } {
  if (!(error instanceof Error)) return { reason: String(error) }
  return { ...('code' in error ? { code: error.code } : {}), reason: error.message }
}

const MAX_ERROR_CHARACTERS = 1_000
/** PostgreSQL stores no text with this character. */
const NUL = '\0'

/** Describes anything that code can throw, in a text that every engine can store. */
export function describeThrown(error: unknown): string {
  let text: string
  try {
    // The message of an error can be any value.
    text = String(error instanceof Error ? error.message || error.name : error)
  } catch {
    text = 'threw a value that has no text'
  }
  return text.replaceAll(NUL, '').slice(0, MAX_ERROR_CHARACTERS) || 'threw an empty text'
}

/** Why the service cannot start: all errors, one line each. */
export class ConfigError extends Error {
  constructor(
    what: string,
    readonly errors: readonly string[],
  ) {
    super(`${what}:\n${errors.map((error) => `  - ${error}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}
