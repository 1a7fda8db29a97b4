// Those who wait for a turn, in the order in which they came.

interface SemaphoreWaiter {
  readonly begin: () => void
  readonly refuse: (reason: unknown) => void
  readonly timer: NodeJS.Timeout
}

export class Semaphore {
  #available: number
  readonly #waiters = new Set<SemaphoreWaiter>()

  constructor(
    private readonly capacity: number,
    private readonly timeoutMs: number,
    /** What whoever has waited too long is told. */
    private readonly createTimeoutError: () => unknown,
  ) {
    this.#available = capacity
  }

  /** How many have their turn, or wait for it. */
  get pending(): number {
    return this.capacity - this.#available + this.#waiters.size
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#available > 0) this.#available--
    else await this.#acquire()
    try {
      return await work()
    } finally {
      const [next] = this.#waiters
      if (next) this.#dequeue(next).begin()
      else this.#available++
    }
  }

  /** For those who would wait in vain. */
  rejectAll(reason: () => unknown): void {
    for (const each of [...this.#waiters]) this.#dequeue(each).refuse(reason())
  }

  async #acquire(): Promise<void> {
    return new Promise((begin, refuse) => {
      const timer = setTimeout(() => {
        this.#dequeue(waiter).refuse(this.createTimeoutError())
      }, this.timeoutMs)
      const waiter = { begin, refuse, timer }
      this.#waiters.add(waiter)
    })
  }

  #dequeue(waiter: SemaphoreWaiter): SemaphoreWaiter {
    clearTimeout(waiter.timer)
    this.#waiters.delete(waiter)
    return waiter
  }
}
