// Limits concurrent work. Waiters start in the order of their arrival and fail after a timeout.
import type { WaitingCalls } from './measures.js'

/** The longest delay of a timer in Node. */
export const MAX_TIMER_MS = 2 ** 31 - 1

interface SemaphoreWaiter {
  readonly queuedAtMs: number
  readonly start: () => void
  readonly reject: (reason: unknown) => void
  readonly timer: NodeJS.Timeout
}

export class Semaphore {
  #available: number
  readonly #waiters = new Set<SemaphoreWaiter>()

  constructor(
    private readonly capacity: number,
    private readonly timeoutMs: number,
    /** Creates the error for a waiter that timed out. */
    private readonly createTimeoutError: () => unknown,
  ) {
    this.#available = capacity
  }

  /** The number of running and waiting calls. */
  get pending(): number {
    return this.capacity - this.#available + this.#waiters.size
  }

  get waiting(): number {
    return this.#waiters.size
  }

  get waitingCalls(): WaitingCalls {
    const [first] = this.#waiters
    return { count: this.#waiters.size, sinceMs: first?.queuedAtMs ?? Infinity }
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#available > 0) this.#available--
    else await this.#acquire()
    try {
      return await work()
    } finally {
      const [next] = this.#waiters
      if (next) this.#dequeue(next).start()
      else this.#available++
    }
  }

  /** Rejects all waiters, because their work would fail anyway. */
  rejectAll(createError: () => unknown): void {
    for (const each of [...this.#waiters]) this.#dequeue(each).reject(createError())
  }

  async #acquire(): Promise<void> {
    return new Promise((start, reject) => {
      const timer = setTimeout(() => {
        this.#dequeue(waiter).reject(this.createTimeoutError())
      }, this.timeoutMs)
      const waiter = { queuedAtMs: performance.now(), start, reject, timer }
      this.#waiters.add(waiter)
    })
  }

  #dequeue(waiter: SemaphoreWaiter): SemaphoreWaiter {
    clearTimeout(waiter.timer)
    this.#waiters.delete(waiter)
    return waiter
  }
}
