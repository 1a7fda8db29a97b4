// Those who wait for a turn, in the order in which they came.

interface Waiting {
  readonly begin: () => void
  readonly refuse: (reason: unknown) => void
  readonly timer: NodeJS.Timeout
}

export class Line {
  #free: number
  readonly #waiting = new Set<Waiting>()

  constructor(
    private readonly turns: number,
    private readonly patienceMs: number,
    /** What whoever has waited too long is told. */
    private readonly outOfTime: () => unknown,
  ) {
    this.#free = turns
  }

  /** How many have their turn, or wait for it. */
  get pending(): number {
    return this.turns - this.#free + this.#waiting.size
  }

  async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#turn()
    try {
      return await work()
    } finally {
      const [next] = this.#waiting
      if (next) this.#leave(next).begin()
      else this.#free++
    }
  }

  /** For those who would wait in vain. */
  refuseAll(reason: () => unknown): void {
    for (const each of [...this.#waiting]) this.#leave(each).refuse(reason())
  }

  async #turn(): Promise<void> {
    return new Promise((begin, refuse) => {
      const timer = setTimeout(() => {
        this.#leave(waiting).refuse(this.outOfTime())
      }, this.patienceMs)
      const waiting = { begin, refuse, timer }
      this.#waiting.add(waiting)
    })
  }

  #leave(waiting: Waiting): Waiting {
    clearTimeout(waiting.timer)
    this.#waiting.delete(waiting)
    return waiting
  }
}
