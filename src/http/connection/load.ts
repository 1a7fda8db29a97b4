import type { ServerResponse } from 'node:http'

const LAG_CHECK_INTERVAL_MS = 500

/** Measures the load of this process: requests in flight and event-loop delay. */
export class LoadMonitor {
  #inFlight = 0
  /** A long-lived Set would keep removed responses alive across garbage collections, so this one is weak. */
  readonly #counted = new WeakSet<ServerResponse>()
  #isLagging = false
  readonly #timer: NodeJS.Timeout | undefined

  /** A `maxLateMs` of 0 disables the check of the event-loop delay. */
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
   * Counts a request until its response emits `close`. A response that is already destroyed does not emit it again, so it is not counted.
   * `ConnectionTracker` emits `close` for the pipelined responses that Node does not close.
   */
  add(response: ServerResponse): void {
    if (response.destroyed) return
    this.#counted.add(response)
    this.#inFlight++
    response.on('close', () => {
      this.remove(response)
    })
  }

  /** Stops counting a request. Long polls and event streams cost almost nothing while they wait. */
  remove(response: ServerResponse): void {
    if (this.#counted.delete(response)) this.#inFlight--
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
