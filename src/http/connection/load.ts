import type { ServerResponse } from 'node:http'

const LAG_CHECK_INTERVAL_MS = 500

/** How much this process has to do: the requests under way, and whether its event loop keeps up. */
export class LoadMonitor {
  #inFlight = 0
  /** Weak: a Set that lives long makes the garbage collector keep responses that were removed from it. */
  readonly #counted = new WeakSet<ServerResponse>()
  #isLagging = false
  readonly #timer: NodeJS.Timeout | undefined

  /** No lateness is too much where `maxLateMs` is 0. */
  constructor(
    private readonly maxInFlight: number,
    maxLateMs: number,
  ) {
    if (maxLateMs === 0) return
    let due = performance.now() + LAG_CHECK_INTERVAL_MS
    this.#timer = setInterval(() => {
      const now = performance.now()
      this.#isLagging = now - due > maxLateMs
      due = now + LAG_CHECK_INTERVAL_MS
    }, LAG_CHECK_INTERVAL_MS).unref()
  }

  get isOverloaded(): boolean {
    return this.#inFlight >= this.maxInFlight || this.#isLagging
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /**
   * Counts a request until its response is closed. A response that is closed already never says so again: it would be counted for ever.
   * `Connections` closes the responses that Node forgets.
   */
  add(response: ServerResponse): void {
    if (response.destroyed) return
    this.#counted.add(response)
    this.#inFlight++
    response.on('close', () => {
      this.remove(response)
    })
  }

  /** What waits for something to happen costs next to nothing: it is not counted any more. */
  remove(response: ServerResponse): void {
    if (this.#counted.delete(response)) this.#inFlight--
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
