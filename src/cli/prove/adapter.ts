// What prove has to know of a service: how each operation is asked for, and what its answers mean. docs/prove.md has an example.
import type { IncomingHttpHeaders } from 'node:http'

export interface HttpRequest {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, if it is there. */
  readonly body?: unknown
}

export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The JSON, or the text if it is none. */
  readonly body: unknown
}

/**
 * One request to one of the nodes, and its answer. It fails with NotSent, or with Lost: do not catch those, prove knows what they
 * mean.
 */
export type SendRequest = (method: string, path: string, request?: HttpRequest) => Promise<HttpResponse>

/** Nobody was there to take it: nothing has happened. */
export class NotSentError extends Error {}

/** It was sent, and there was no answer: nobody knows whether it happened. */
export class ResponseLostError extends Error {}

/** What is stored: the version is 0 after create, and one more with every update. */
export interface ObservedState {
  readonly version: number
  readonly tokens: readonly string[]
}

export type FailureResult =
  /** Of an update or a removal: the record is not at the version that was named; what it is now, if the answer tells. */
  | { readonly outcome: 'conflict'; readonly theirs?: ObservedState }
  /** There is no such record. */
  | { readonly outcome: 'missing' }
  /** Nothing was written; it is worth another try. */
  | { readonly outcome: 'refused'; readonly retryAfterMs?: number }
  /** It may have been written, or not. */
  | { readonly outcome: 'unknown'; readonly retryAfterMs?: number }
  /** What a service must never answer: a violation, in words. */
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
  /** The one that it made; a delete takes the next number too. */
  readonly version: number
  readonly action: 'create' | 'update' | 'delete'
  /** Undefined where the tokens are not among what was changed. */
  readonly before?: readonly string[] | undefined
  readonly after?: readonly string[] | undefined
}

export type FeedResult =
  | { readonly outcome: 'ok'; readonly changes: readonly FeedChange[]; readonly next: number }
  /** The service has none. */
  | { readonly outcome: 'absent' }
  | FailureResult

/** What the command line says about the service. */
export interface AdapterOptions {
  /** Marks the records of this run. */
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
  /** Whether a request that is repeated with the same `Idempotency-Key` takes effect once. Else none is repeated. */
  readonly takesKeys?: boolean
  /** For services that prove is to start itself: their addresses. */
  start?(): Promise<readonly string[]>
  /** Ends what start has begun. */
  stop?(): Promise<void>
  /** Before all others: a login, a look at what there is. What it throws ends the run. */
  open?(send: SendRequest): Promise<void>
  create(send: SendRequest, tokens: readonly string[], key?: string): Promise<RecordResult>
  read(send: SendRequest, id: string): Promise<RecordResult>
  /** Only if the record is at `version`: else `conflict`. */
  update(
    send: SendRequest,
    id: string,
    version: number,
    tokens: readonly string[],
    key?: string,
  ): Promise<RecordResult>
  remove(send: SendRequest, id: string, version: number, key?: string): Promise<RemovalResult>
  /** How many records of this run there are now. Without it totals are not checked. */
  total?(send: SendRequest): Promise<TotalResult>
  /** All records of this run. */
  list?(send: SendRequest): Promise<ListResult>
  /** What was committed behind `since`, in order; undefined is where this run began. Waits a little if there is nothing. */
  feed?(send: SendRequest, since: number | undefined, waitSeconds: number): Promise<FeedResult>
  close?(send: SendRequest): Promise<void>
}
