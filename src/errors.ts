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

export class VersoError extends Error {
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
