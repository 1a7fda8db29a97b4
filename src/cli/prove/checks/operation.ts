// One operation of a client and its result, as the checks read it.
import type { ObservedState } from '../adapters/adapter.js'

export type OperationKind = 'create' | 'read' | 'update' | 'remove' | 'total'
export type OperationOutcome = 'ok' | 'conflict' | 'missing' | 'refused' | 'unknown' | 'unexpected'

export interface ClientOperation {
  readonly kind: OperationKind
  readonly client: string
  /** Monotonic clock. */
  readonly invokedMs: number
  readonly answeredMs: number
  readonly outcome: OperationOutcome
  /** Undefined for a create without a response. */
  readonly record?: string | undefined
  /** Requests with the same key are repetitions of one request. */
  readonly key?: string | undefined
  /** Token that an update appends. */
  readonly token?: string | undefined
  /** Version that an update or a removal is based on. */
  readonly named?: number | undefined
  /** Version and tokens in the response. */
  readonly version?: number | undefined
  readonly tokens?: readonly string[] | undefined
  /** State of the record in a conflict response. */
  readonly theirs?: ObservedState | undefined
  readonly total?: number | undefined
  readonly message?: string | undefined
}
