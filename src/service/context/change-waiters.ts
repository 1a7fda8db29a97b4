import type { Database } from '../../store/engine/database.js'
import { readLastSeq } from '../../store/log/feed.js'

interface WaitingReader {
  readonly since: number
  readonly wake: () => void
}

/** Wakes readers that wait for the next Change. After a commit, one query of the Log serves all of them. */
export class ChangeWaiters {
  readonly #readers = new Set<WaitingReader>()
  #stopListening: (() => void) | undefined
  #checking: Promise<void> | undefined
  #isCheckRequested = false
  #isClosed = false

  constructor(private readonly db: Database) {}

  get size(): number {
    return this.#readers.size
  }

  /** The lowest sequence number after which a reader waits; undefined without readers. */
  get oldestPosition(): number | undefined {
    let oldest: number | undefined
    for (const { since } of this.#readers) if (since < (oldest ?? Infinity)) oldest = since
    return oldest
  }

  /** Resolves after a Change with a number above `since`, after `ms`, or when the signal aborts. It may resolve early. */
  async wait(since: number, ms: number, signal: AbortSignal): Promise<void> {
    if (ms <= 0 || signal.aborted || this.#isClosed) return
    this.#stopListening ??= this.db.commits.listen(() => {
      this.#requestCheck()
    })
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        this.#readers.delete(reader)
        resolve()
      }
      const reader = { since, wake: end }
      const timer = setTimeout(end, ms)
      signal.addEventListener('abort', end)
      this.#readers.add(reader)
      // A Change may have been committed after the reader's last query.
      this.#requestCheck()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopListening?.()
    for (const { wake } of [...this.#readers]) wake()
    await this.#checking
  }

  /** Runs one query at a time, and repeats it for commits that happen meanwhile. Without readers, the next call of `wait` runs it. */
  #requestCheck(): void {
    this.#isCheckRequested = true
    if (this.#readers.size > 0) this.#checking ??= this.#checkWhileRequested()
  }

  async #checkWhileRequested(): Promise<void> {
    while (this.#isCheckRequested && this.#readers.size > 0) {
      this.#isCheckRequested = false
      try {
        const last = await readLastSeq(this.db.reader)
        for (const { since, wake } of [...this.#readers]) if (since < last) wake()
      } catch {
        // The readers query the Log themselves and get the error.
        for (const { wake } of [...this.#readers]) wake()
      }
    }
    // In the same tick as the end of the loop: a later request must start a new check.
    this.#checking = undefined
  }
}
