import type { Database } from '../../store/engine/database.js'
import { readLastSeq } from '../../store/log/feed.js'

interface WaitingReader {
  readonly since: number
  readonly wake: () => void
}

/** Those who wait for the next Change: one look at the Log for all of them, whenever something may have been committed. */
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

  /** Until there is a Change after this one, the time is over, or the signal says so. It may end early, and never late. */
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
      // Something may have come since the reader looked.
      this.#requestCheck()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopListening?.()
    for (const { wake } of [...this.#readers]) wake()
    await this.#checking
  }

  /** One at a time; what is committed meanwhile is looked for again. Where nobody waits, whoever comes looks. */
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
        // Whoever reads next is told what is wrong.
        for (const { wake } of [...this.#readers]) wake()
      }
    }
    // At once: whoever asks a moment later would rely on a look that is over.
    this.#checking = undefined
  }
}
