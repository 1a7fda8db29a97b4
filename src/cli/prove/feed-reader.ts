// Reads the feed beside the clients, from whichever node, and goes on where it was when one is gone.
import { Lost, NotSent, type FeedAnswer, type State } from './adapter.js'
import type { Ground } from './caller.js'
import { FeedFold } from './feed-fold.js'
import type { Violation } from './violation.js'

const WAIT_SECONDS = 1
const PAUSE_MS = 100
/** How long the last changes may take to come, when all writes are over. */
const LATE_MS = 10_000

export class FeedReader {
  readonly #fold = new FeedFold()
  readonly #unexpected: Violation[] = []
  #since: number | undefined
  #turn = 0
  #isOver = false
  #isAbsent = false
  #done: Promise<void> = Promise.resolve()

  constructor(private readonly ground: Ground) {}

  get count(): number {
    return this.#fold.count
  }

  /** Whether the service has a feed, as far as is known. */
  get isThere(): boolean {
    return this.ground.adapter.feed !== undefined && !this.#isAbsent
  }

  start(): void {
    this.#done = this.#keepReading()
    // Told by finish, who waits for it.
    this.#done.catch(() => undefined)
  }

  /** Reads on until all is there that the table holds, and answers what is wrong. */
  async finish(table: ReadonlyMap<string, State>, own: ReadonlySet<string>): Promise<Violation[]> {
    this.#isOver = true
    await this.#done
    const untilMs = performance.now() + LATE_MS
    while (this.isThere && !this.#fold.isComplete(table) && performance.now() < untilMs) await this.#read()
    // Deletes change nothing that is in the table: whatever is left.
    while (this.isThere && (await this.#read()) > 0) continue
    return this.isThere ? [...this.#unexpected, ...this.#fold.finish(table, own)] : []
  }

  async #keepReading(): Promise<void> {
    while (!this.#isOver && this.isThere) await this.#read()
  }

  async #read(): Promise<number> {
    const { adapter, connection, places, pause } = this.ground
    const place = places[this.#turn++ % places.length]
    if (!adapter.feed || !place) return 0
    const answer = await orLost(
      adapter.feed(connection.to(place), this.#since, this.#isOver ? 0 : WAIT_SECONDS),
    )
    if (answer.outcome === 'ok') {
      for (const change of answer.changes) this.#fold.add(change)
      this.#since = answer.next
      return answer.changes.length
    }
    if (answer.outcome === 'absent') this.#isAbsent = true
    else if (answer.outcome === 'unexpected')
      this.#unexpected.push({ rule: 'unexpected', message: `feed: ${answer.message}` })
    await pause(('retryAfterMs' in answer ? answer.retryAfterMs : undefined) ?? PAUSE_MS)
    return 0
  }
}

async function orLost(answer: Promise<FeedAnswer>): Promise<FeedAnswer> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof NotSent || error instanceof Lost) return { outcome: 'unknown' }
    throw error
  }
}
