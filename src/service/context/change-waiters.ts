import type { Database } from '../../store/engine/database.js'
import { readLastSeq } from '../../store/log/feed.js'

interface Reader {
  readonly since: number
  readonly wake: () => void
}

/** Those who wait for the next Change: one look at the Log for all of them, whenever something may have been committed. */
export class Waiting {
  readonly #readers = new Set<Reader>()
  #stop: (() => void) | undefined
  #looking: Promise<void> | undefined
  #isAsked = false
  #isClosed = false

  constructor(private readonly db: Database) {}

  get size(): number {
    return this.#readers.size
  }

  /** Until there is a Change after this one, the time is over, or the signal says so. It may end early, and never late. */
  async wait(since: number, ms: number, signal: AbortSignal): Promise<void> {
    if (ms <= 0 || signal.aborted || this.#isClosed) return
    this.#stop ??= this.db.commits.listen(() => {
      this.#look()
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
      this.#look()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stop?.()
    for (const { wake } of [...this.#readers]) wake()
    await this.#looking
  }

  /** One at a time; what is committed meanwhile is looked for again. Where nobody waits, whoever comes looks. */
  #look(): void {
    this.#isAsked = true
    if (this.#readers.size > 0) this.#looking ??= this.#lookWhileAsked()
  }

  async #lookWhileAsked(): Promise<void> {
    while (this.#isAsked && this.#readers.size > 0) {
      this.#isAsked = false
      try {
        const last = await readLastSeq(this.db.reader)
        for (const { since, wake } of [...this.#readers]) if (since < last) wake()
      } catch {
        // Whoever reads next is told what is wrong.
        for (const { wake } of [...this.#readers]) wake()
      }
    }
    // At once: whoever asks a moment later would rely on a look that is over.
    this.#looking = undefined
  }
}
