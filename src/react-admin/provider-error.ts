// Errors in the form that react-admin reads: `message` for notifications, `status` for the auth provider, `body.errors` for forms.
import { isJsonObject } from '../client/answer.js'
import { ConflictError, RequestError } from '../client/errors.js'
import type { AdminValues } from './changes.js'

/** The body of a ProviderError. */
export interface ProviderErrorBody {
  /** Kind that the service names, such as `conflict`, `invalid` or `not-unique`. */
  readonly kind: string
  readonly message: string
  /** Finds the request in the log of the service. */
  readonly requestId?: string | undefined
  /** Messages by field. A form of react-admin shows each at its input, and `root.serverError` as a notification. */
  readonly errors?: Readonly<Record<string, unknown>>
  /** For a conflict: the record that the form is based on; undefined if it is no longer known. */
  readonly base?: AdminValues | undefined
  /** For a conflict: the changes that were sent. */
  readonly ours?: AdminValues
  /** For a conflict: the record as it is now. */
  readonly theirs?: AdminValues
  /** For a conflict: every field that either side changed, with its values and a verdict. */
  readonly fields?: AdminValues
  /** For a conflict: the version now, on which the resolved changes can be saved. */
  readonly current?: number
  readonly changedBy?: unknown
  readonly changedOn?: string | null
}

/** A failed call of the data provider. `cause` is the error of the client. */
export class ProviderError extends Error {
  readonly status: number
  readonly body: ProviderErrorBody

  constructor(cause: RequestError, body: ProviderErrorBody) {
    super(cause.message, { cause })
    this.name = 'ProviderError'
    this.status = cause.status
    this.body = body
  }
}

/** Turns an error of the client into one of the data provider. `sent` are the values of the write. */
export function toProviderError(error: unknown, sent: AdminValues = {}): unknown {
  // An aborted call rejects with the reason of its signal, which react-admin ignores.
  if (!(error instanceof RequestError)) return error
  const { kind, message, requestId } = error
  const common = { kind, message, requestId }
  if (error instanceof ConflictError)
    return new ProviderError(error, { ...common, ...describeConflict(error) })
  const errors = listFieldErrors(error, sent)
  return new ProviderError(error, errors ? { ...common, errors } : common)
}

function describeConflict(error: ConflictError) {
  const { base, ours, theirs, fields, current, changedBy, changedOn } = error
  return { base, ours, theirs, fields, current, changedBy, changedOn }
}

function listFieldErrors({ fields, message }: RequestError, sent: AdminValues): AdminValues | undefined {
  const errors: Record<string, unknown> = {}
  for (const [name, text] of Object.entries(fields)) {
    if (typeof text !== 'string') continue
    errors[name] = text
    // The input of a reference binds its id.
    if (isJsonObject(sent[name]) || sent[name] === null) errors[`${name}.id`] = text
  }
  return Object.keys(errors).length === 0 ? undefined : { ...errors, root: { serverError: message } }
}
