// One client's hands: each operation goes to some node, is perhaps cut off or repeated, and is written down.
import {
  ResponseLostError,
  NotSentError,
  type Adapter,
  type FailureResult,
  type RecordResult,
  type SendRequest,
  type ObservedState,
} from './adapter.js'
import type { RemovalResult, TotalResult } from './adapter.js'
import type { HttpConnectionPool, NodeAddress } from './connection.js'
import type { Journal, ClientOperation } from './journal.js'
import type { SeededRandom } from './random.js'

const UNREACHABLE_RETRY_MS = 50
const MAX_CUT_DELAY_MS = 4
/** A create without an answer is repeated for so long. */
const CREATE_RETRY_TIMEOUT_MS = 60_000

/** What all clients share. */
export interface ClientContext {
  readonly adapter: Adapter
  readonly connections: HttpConnectionPool
  readonly addresses: readonly NodeAddress[]
  readonly journal: Journal
  /** Waits so long, or until there is no time left. */
  readonly pause: (milliseconds: number) => Promise<void>
}

/** How often requests are cut off, carry a key, and are repeated: shares from 0 to 1. */
export interface FaultInjection {
  readonly drop: number
  /** Of updates and deletes; creates always carry one. */
  readonly keyed: number
  /** A write that is sent twice carries a key. */
  readonly duplicates: number
}

type OperationDetails = Pick<ClientOperation, 'kind' | 'record' | 'key' | 'token' | 'named'>
/** Only that of a record has an id. */
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
    private readonly run: string,
  ) {}

  /** With a key, an answer that was lost is asked for again until it is known. */
  async create(): Promise<RecordResult> {
    const { adapter } = this.context
    const about: OperationDetails = { kind: 'create', ...this.#createKey() }
    const ask = async (send: SendRequest) => adapter.create(send, [], about.key)
    let answer = await this.#sendOnce(about, ask)
    if (
      answer.outcome === 'ok' &&
      about.key !== undefined &&
      this.random.chance(this.faultInjection.duplicates)
    )
      await this.#sendAgain(about, ask)
    const isOpen = () => answer.outcome === 'unknown' || answer.outcome === 'refused'
    const untilMs = performance.now() + CREATE_RETRY_TIMEOUT_MS
    while (about.key !== undefined && isOpen() && performance.now() < untilMs)
      answer = await this.#sendOnce(about, ask)
    return answer
  }

  async read(record: string): Promise<RecordResult> {
    return this.#sendOnce({ kind: 'read', record }, (send) => this.context.adapter.read(send, record))
  }

  /** Appends a token of its own to what was read. */
  async update(record: string, { version, tokens }: ObservedState): Promise<RecordResult> {
    const { adapter, journal } = this.context
    const token = journal.nextToken(this.name)
    const { isTwice, ...key } = this.#chooseKey()
    const about: OperationDetails = { kind: 'update', record, token, named: version, ...key }
    return this.#write(about, isTwice, (send) =>
      adapter.update(send, record, version, [...tokens, token], about.key),
    )
  }

  async remove(record: string, version: number): Promise<RemovalResult> {
    const { isTwice, ...key } = this.#chooseKey()
    const about: OperationDetails = { kind: 'remove', record, named: version, ...key }
    return this.#write(about, isTwice, async (send): Promise<RemovalResult> => {
      const answer = await this.context.adapter.remove(send, record, version, about.key)
      // Some services show once more what they have removed: that is no state of the record.
      return answer.outcome === 'ok' ? { outcome: 'ok' } : answer
    })
  }

  async total(): Promise<TotalResult | undefined> {
    const { adapter } = this.context
    if (!adapter.total) return undefined
    return this.#sendOnce({ kind: 'total' }, async (send) => adapter.total?.(send) ?? { outcome: 'refused' })
  }

  #createKey(): { readonly key?: string } {
    return this.context.adapter.takesKeys ? { key: `${this.run}.${this.name}.${++this.#keys}` } : {}
  }

  /** Whether a write carries a key, and whether it is sent twice with it. */
  #chooseKey(): { readonly key?: string; readonly isTwice: boolean } {
    const isTwice = this.random.chance(this.faultInjection.duplicates)
    const isKeyed = this.random.chance(this.faultInjection.keyed) || isTwice
    const key = isKeyed ? this.#createKey() : {}
    return { ...key, isTwice: isTwice && 'key' in key }
  }

  /** Sends it once; or twice, at the same time or one after the other. */
  async #write<A extends OperationResult>(
    about: OperationDetails,
    isTwice: boolean,
    ask: (send: SendRequest) => Promise<A>,
  ): Promise<A | FailureResult> {
    if (!isTwice) return this.#sendOnce(about, ask)
    const isAtOnce = this.random.chance(0.5)
    const first = this.#sendOnce(about, ask)
    if (!isAtOnce) await first
    const second = this.#sendAgain(about, ask)
    const answers = [await first, await second] as const
    return answers.find(({ outcome }) => outcome === 'ok') ?? answers[1]
  }

  async #sendAgain<A extends OperationResult>(
    about: OperationDetails,
    ask: (send: SendRequest) => Promise<A>,
  ): Promise<A | FailureResult> {
    this.repeated++
    return this.#sendOnce(about, ask)
  }

  async #sendOnce<A extends OperationResult>(
    about: OperationDetails,
    ask: (send: SendRequest) => Promise<A>,
  ): Promise<A | FailureResult> {
    const { journal, pause } = this.context
    const invokedMs = performance.now()
    const answer = await this.#attempt(ask)
    const times = { invokedMs, answeredMs: performance.now() }
    const record = about.record ?? (answer.outcome === 'ok' ? answer.id : undefined)
    journal.add({ ...about, record, client: this.name, ...times, ...answer })
    const waitMs = readRetryDelay(answer)
    if (waitMs > 0) await pause(waitMs)
    return answer
  }

  async #attempt<A extends OperationResult>(
    ask: (send: SendRequest) => Promise<A>,
  ): Promise<A | FailureResult> {
    const { connections, addresses } = this.context
    const address = addresses[this.random.below(addresses.length)]
    if (!address) throw new Error('there is no node')
    const isCut = this.random.chance(this.faultInjection.drop)
    try {
      return await ask(connections.sendTo(address, isCut ? this.random.next() * MAX_CUT_DELAY_MS : undefined))
    } catch (error) {
      if (error instanceof NotSentError) return { outcome: 'refused', retryAfterMs: UNREACHABLE_RETRY_MS }
      if (!(error instanceof ResponseLostError)) throw error
      if (isCut) this.dropped++
      return { outcome: 'unknown' }
    }
  }
}

/** What the service asks for before the next try. */
function readRetryDelay(answer: OperationResult): number {
  return 'retryAfterMs' in answer ? (answer.retryAfterMs ?? 0) : 0
}
