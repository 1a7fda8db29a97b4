// Follows the feed during the run, over all nodes in turn. It resumes from its cursor when a node is killed.
import { ResponseLostError, NotSentError, type FeedResult, type ObservedState } from '../adapters/adapter.js'
import type { ClientContext } from './prove-client.js'
import { FeedReplay } from '../checks/feed-replay.js'
import type { Violation } from '../checks/violation.js'

const LONG_POLL_SECONDS = 1
const FEED_RETRY_MS = 100
/** How long the last changes may take to arrive after the last write. */
const FEED_CATCH_UP_TIMEOUT_MS = 10_000

export class FeedReader {
  readonly #replay = new FeedReplay()
  readonly #unexpected: Violation[] = []
  #since: number | undefined
  #nextNode = 0
  #isStopped = false
  #isAbsent = false
  #done: Promise<void> = Promise.resolve()

  constructor(private readonly context: ClientContext) {}

  get count(): number {
    return this.#replay.count
  }

  /** False if the adapter has no feed, or the service answered that it has none. */
  get hasFeed(): boolean {
    return this.context.adapter.feed !== undefined && !this.#isAbsent
  }

  start(): void {
    this.#done = this.#keepReading()
    // `finish` awaits the promise and reports its error.
    this.#done.catch(() => undefined)
  }

  /** Reads until the feed has reached the table, and returns the violations. */
  async finish(table: ReadonlyMap<string, ObservedState>, own: ReadonlySet<string>): Promise<Violation[]> {
    this.#isStopped = true
    await this.#done
    const deadlineMs = performance.now() + FEED_CATCH_UP_TIMEOUT_MS
    while (this.hasFeed && !this.#replay.isComplete(table) && performance.now() < deadlineMs)
      await this.#read()
    // A delete does not show in the table, so read until nothing is left.
    while (this.hasFeed && (await this.#read()) > 0) continue
    return this.hasFeed ? [...this.#unexpected, ...this.#replay.finish(table, own)] : []
  }

  async #keepReading(): Promise<void> {
    while (!this.#isStopped && this.hasFeed) await this.#read()
  }

  async #read(): Promise<number> {
    const { adapter, connections, addresses, pause } = this.context
    const address = addresses[this.#nextNode++ % addresses.length]
    if (!adapter.feed || !address) return 0
    const answer = await toUnknownIfLost(
      adapter.feed(connections.sendTo(address), this.#since, this.#isStopped ? 0 : LONG_POLL_SECONDS),
    )
    if (answer.outcome === 'ok') {
      for (const change of answer.changes) this.#replay.add(change)
      this.#since = answer.next
      return answer.changes.length
    }
    if (answer.outcome === 'absent') this.#isAbsent = true
    else if (answer.outcome === 'unexpected')
      this.#unexpected.push({ rule: 'unexpected', message: `feed: ${answer.message}` })
    await pause(('retryAfterMs' in answer ? answer.retryAfterMs : undefined) ?? FEED_RETRY_MS)
    return 0
  }
}

async function toUnknownIfLost(answer: Promise<FeedResult>): Promise<FeedResult> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof NotSentError || error instanceof ResponseLostError) return { outcome: 'unknown' }
    throw error
  }
}
