/** What cannot be done, by kind. The list is closed: `http/route/errors.ts` has a status for each, and each has a test. */
export const ERROR_KINDS = [
  'bad-request',
  'unauthenticated',
  'forbidden',
  'unknown-model',
  'not-found',
  'method',
  'media-type',
  'too-large',
  'misdirected',
  'conflict',
  'not-unique',
  'still-referenced',
  'stale-match',
  'gone',
  'invalid',
  'key-reused',
  'too-many',
  'busy',
  'storage-full',
] as const

export type ErrorKind = (typeof ERROR_KINDS)[number]

export interface ErrorDetails {
  /** Field faults by field name, all of them at once. */
  readonly errors?: Readonly<Record<string, string>>
  /** What the caller needs to go on; becomes part of the answer. */
  readonly data?: Readonly<Record<string, unknown>>
  /** What of a request that writes several records it is about, as in `errors`: `records[1].` Not told by itself. */
  readonly path?: string
  /** When it is worth trying again, in seconds. */
  readonly retryAfterS?: number
  /** The methods that would have been allowed. */
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

/** The log shows operators the cause of a refusal, and every other error unchanged. */
export function unwrapLoggedCause(error: unknown): unknown {
  return error instanceof VersoError ? (error.cause ?? error) : error
}

/** What the log says of trouble that is not ours: an error of a driver may carry a whole connection with it. */
export function summarizeError(error: unknown): { readonly code?: unknown; readonly reason: string } {
  if (!(error instanceof Error)) return { reason: String(error) }
  return { ...('code' in error ? { code: error.code } : {}), reason: error.message }
}

/** Why the service cannot start: every fault at once, one line each. */
export class ConfigError extends Error {
  constructor(
    what: string,
    readonly errors: readonly string[],
  ) {
    super(`${what}:\n${errors.map((fault) => `  - ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}
