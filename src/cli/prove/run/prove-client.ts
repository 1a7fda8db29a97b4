// A client of the run: sends each operation to a random node, injects faults, and writes the result into the journal.
import {
  ResponseLostError,
  NotSentError,
  type Adapter,
  type FailureResult,
  type RecordResult,
  type SendRequest,
  type ObservedState,
} from '../adapters/adapter.js'
import type { RemovalResult, TotalResult } from '../adapters/adapter.js'
import type { HttpConnectionPool, NodeAddress } from './connection.js'
import type { ClientOperation } from '../checks/operation.js'
import type { Journal } from './journal.js'
import type { SeededRandom } from './random.js'

const UNREACHABLE_RETRY_MS = 50
const MAX_CUT_DELAY_MS = 4
/** A create without a response is repeated for this long. */
const CREATE_RETRY_TIMEOUT_MS = 60_000

/** Values that all clients of a run share. */
export interface ClientContext {
  /** Id of the run, which starts each idempotency key. */
  readonly run: string
  readonly adapter: Adapter
  readonly connections: HttpConnectionPool
  readonly addresses: readonly NodeAddress[]
  readonly journal: Journal
  /** Waits this long, or until the end of the run. */
  readonly pause: (milliseconds: number) => Promise<void>
}

/** Probabilities, from 0 to 1, that a request is cut off, carries a key, or is repeated. */
export interface FaultInjection {
  readonly drop: number
  /** Applies to updates and deletes; creates always carry a key. */
  readonly keyed: number
  /** Writes that are sent twice always carry a key. */
  readonly duplicates: number
}

type OperationDetails = Pick<ClientOperation, 'kind' | 'record' | 'key' | 'token' | 'named'>
/** Only results of records have an id. */
type OperationResult = { readonly outcome: 'ok'; readonly id?: string } | FailureResult

export class ProveClient {
  #keys = 0
  dropped = 0
  repeated = 0

  constructor(
    private readonly context: ClientContext,
    readonly name: string,
    private readonly random: SeededRandom,
    private readonly faultInjection: FaultInjection,
  ) {}

  /** Repeats the create with the same key until its response is known. */
  async create(): Promise<RecordResult> {
    const { adapter } = this.context
    const details: OperationDetails = { kind: 'create', ...this.#createKey() }
    const request = async (send: SendRequest) => adapter.create(send, [], details.key)
    let answer = await this.#sendOnce(details, request)
    if (
      answer.outcome === 'ok' &&
      details.key !== undefined &&
      this.random.chance(this.faultInjection.duplicates)
    )
      await this.#sendAgain(details, request)
    const isUnresolved = () => answer.outcome === 'unknown' || answer.outcome === 'refused'
    const deadlineMs = performance.now() + CREATE_RETRY_TIMEOUT_MS
    while (details.key !== undefined && isUnresolved() && performance.now() < deadlineMs)
      answer = await this.#sendOnce(details, request)
    return answer
  }

  async read(record: string): Promise<RecordResult> {
    return this.#sendOnce({ kind: 'read', record }, (send) => this.context.adapter.read(send, record))
  }

  /** Appends a new token to the observed tokens. */
  async update(record: string, { version, tokens }: ObservedState): Promise<RecordResult> {
    const { adapter, journal } = this.context
    const token = journal.nextToken(this.name)
    const { isSentTwice, ...key } = this.#chooseKey()
    const details: OperationDetails = { kind: 'update', record, token, named: version, ...key }
    return this.#write(details, isSentTwice, (send) =>
      adapter.update(send, record, version, [...tokens, token], details.key),
    )
  }

  async remove(record: string, version: number): Promise<RemovalResult> {
    const { isSentTwice, ...key } = this.#chooseKey()
    const details: OperationDetails = { kind: 'remove', record, named: version, ...key }
    return this.#write(details, isSentTwice, async (send): Promise<RemovalResult> => {
      const answer = await this.context.adapter.remove(send, record, version, details.key)
      // Some services return the removed record, which is not its current state.
      return answer.outcome === 'ok' ? { outcome: 'ok' } : answer
    })
  }

  async total(): Promise<TotalResult | undefined> {
    const { adapter } = this.context
    if (!adapter.total) return undefined
    return this.#sendOnce({ kind: 'total' }, async (send) => adapter.total?.(send) ?? { outcome: 'refused' })
  }

  #createKey(): { readonly key?: string } {
    return this.context.adapter.takesKeys ? { key: `${this.context.run}.${this.name}.${++this.#keys}` } : {}
  }

  /** Decides whether a write carries a key, and whether it is sent twice. */
  #chooseKey(): { readonly key?: string; readonly isSentTwice: boolean } {
    const isSentTwice = this.random.chance(this.faultInjection.duplicates)
    const isKeyed = this.random.chance(this.faultInjection.keyed) || isSentTwice
    const key = isKeyed ? this.#createKey() : {}
    return { ...key, isSentTwice: isSentTwice && 'key' in key }
  }

  /** Sends the write once or twice; two requests go out concurrently or one after the other. */
  async #write<A extends OperationResult>(
    details: OperationDetails,
    isSentTwice: boolean,
    request: (send: SendRequest) => Promise<A>,
  ): Promise<A | FailureResult> {
    if (!isSentTwice) return this.#sendOnce(details, request)
    const isConcurrent = this.random.chance(0.5)
    const first = this.#sendOnce(details, request)
    if (!isConcurrent) await first
    const second = this.#sendAgain(details, request)
    const answers = [await first, await second] as const
    return answers.find(({ outcome }) => outcome === 'ok') ?? answers[1]
  }

  async #sendAgain<A extends OperationResult>(
    details: OperationDetails,
    request: (send: SendRequest) => Promise<A>,
  ): Promise<A | FailureResult> {
    this.repeated++
    return this.#sendOnce(details, request)
  }

  async #sendOnce<A extends OperationResult>(
    details: OperationDetails,
    request: (send: SendRequest) => Promise<A>,
  ): Promise<A | FailureResult> {
    const { journal, pause } = this.context
    const invokedMs = performance.now()
    const answer = await this.#attempt(request)
    const times = { invokedMs, answeredMs: performance.now() }
    const record = details.record ?? (answer.outcome === 'ok' ? answer.id : undefined)
    journal.add({ ...details, record, client: this.name, ...times, ...answer })
    const waitMs = readRetryDelay(answer)
    if (waitMs > 0) await pause(waitMs)
    return answer
  }

  async #attempt<A extends OperationResult>(
    request: (send: SendRequest) => Promise<A>,
  ): Promise<A | FailureResult> {
    const { connections, addresses } = this.context
    const address = addresses[this.random.below(addresses.length)]
    if (!address) throw new Error('no node address is configured')
    const isCut = this.random.chance(this.faultInjection.drop)
    try {
      return await request(
        connections.sendTo(address, isCut ? this.random.next() * MAX_CUT_DELAY_MS : undefined),
      )
    } catch (error) {
      if (error instanceof NotSentError) return { outcome: 'refused', retryAfterMs: UNREACHABLE_RETRY_MS }
      if (!(error instanceof ResponseLostError)) throw error
      if (isCut) this.dropped++
      return { outcome: 'unknown' }
    }
  }
}

/** Returns how long the service asks to wait before a retry. */
function readRetryDelay(answer: OperationResult): number {
  return 'retryAfterMs' in answer ? (answer.retryAfterMs ?? 0) : 0
}
