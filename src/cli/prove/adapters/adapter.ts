// Interface between prove and a service: requests for each operation, and the meaning of responses. docs/operations/prove.md has
// an example.
import type { IncomingHttpHeaders } from 'node:http'

/** Heading of an error that prevents the run. */
export const NOTHING_TESTED = 'The service was not tested'

export interface HttpRequest {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON if it is defined. */
  readonly body?: unknown
}

export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Parsed JSON, or the text if it is not JSON. */
  readonly body: unknown
}

/**
 * Sends one request to one node. It rejects with NotSentError or ResponseLostError; adapters must not catch them,
 * because prove handles both.
 */
export type SendRequest = (method: string, path: string, request?: HttpRequest) => Promise<HttpResponse>

/** The connection was refused, so nothing was written. */
export class NotSentError extends Error {}

/** The request was sent and no response came. It may have taken effect. */
export class ResponseLostError extends Error {}

/** State of a record. The version is 0 after create and increases by 1 with each update. */
export interface ObservedState {
  readonly version: number
  readonly tokens: readonly string[]
}

export type FailureResult =
  /** An update or a removal named an outdated version. `theirs` is the current state, if the response has it. */
  | { readonly outcome: 'conflict'; readonly theirs?: ObservedState }
  /** The record does not exist. */
  | { readonly outcome: 'missing' }
  /** Nothing was written; the client may retry. */
  | { readonly outcome: 'refused'; readonly retryAfterMs?: number }
  /** The write may have taken effect. */
  | { readonly outcome: 'unknown'; readonly retryAfterMs?: number }
  /** A response that is a violation by itself; `message` describes it. */
  | { readonly outcome: 'unexpected'; readonly message: string }

export type RecordResult = ({ readonly outcome: 'ok'; readonly id: string } & ObservedState) | FailureResult
export type RemovalResult = { readonly outcome: 'ok' } | FailureResult
export type TotalResult = { readonly outcome: 'ok'; readonly total: number } | FailureResult
export type ListResult =
  | { readonly outcome: 'ok'; readonly records: readonly ({ readonly id: string } & ObservedState)[] }
  | FailureResult

export interface FeedChange {
  readonly seq: number
  readonly id: string
  /** The version that the change made; a delete takes the next number too. */
  readonly version: number
  readonly action: 'create' | 'update' | 'delete'
  /** Undefined if the change did not touch the tokens. */
  readonly before?: readonly string[] | undefined
  readonly after?: readonly string[] | undefined
}

export type FeedResult =
  | { readonly outcome: 'ok'; readonly changes: readonly FeedChange[]; readonly next: number }
  /** The service has no feed. */
  | { readonly outcome: 'absent' }
  | FailureResult

/** Options of the command line that concern the service. */
export interface AdapterOptions {
  /** Value that marks the records of this run. */
  readonly run: string
  readonly user?: string | undefined
  readonly password?: string | undefined
  readonly key?: string | undefined
  readonly model?: string | undefined
  readonly field?: string | undefined
  readonly mark?: string | undefined
}

export interface Adapter {
  readonly name: string
  /** A request repeated with the same `Idempotency-Key` takes effect once. Prove repeats no request otherwise. */
  readonly takesKeys?: boolean
  /** Starts the service and returns its addresses, for adapters that bring their own. */
  start?(): Promise<readonly string[]>
  /** Stops the service that `start` started. */
  stop?(): Promise<void>
  /** Runs before all other calls: logs in and checks the service. An error ends the run. */
  open?(send: SendRequest): Promise<void>
  create(send: SendRequest, tokens: readonly string[], key?: string): Promise<RecordResult>
  read(send: SendRequest, id: string): Promise<RecordResult>
  /** Updates the record if it is at `version`; else returns `conflict`. */
  update(
    send: SendRequest,
    id: string,
    version: number,
    tokens: readonly string[],
    key?: string,
  ): Promise<RecordResult>
  remove(send: SendRequest, id: string, version: number, key?: string): Promise<RemovalResult>
  /** Counts the records of this run. Without it, totals are not checked. */
  total?(send: SendRequest): Promise<TotalResult>
  /** Lists all records of this run. */
  list?(send: SendRequest): Promise<ListResult>
  /**
   * Returns the changes committed after `since`, in order; undefined stands for the start of the run. Waits up to
   * `waitSeconds` for a change.
   */
  feed?(send: SendRequest, since: number | undefined, waitSeconds: number): Promise<FeedResult>
  close?(send: SendRequest): Promise<void>
}
