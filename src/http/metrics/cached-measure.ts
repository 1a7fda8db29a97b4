import { setTimeout as sleep } from 'node:timers/promises'

/** A value that takes long to measure: it is measured at most once at a time, and kept for a while. */
export class CachedMeasure<T> {
  #last: { readonly atMs: number; readonly value: T } | undefined
  #running: Promise<T | undefined> | undefined

  constructor(
    private readonly measure: () => Promise<T>,
    private readonly limits: { readonly cacheMs: number; readonly timeoutMs: number },
  ) {}

  /** Undefined if the measurement fails, or takes longer than the timeout. It goes on then, and later calls wait for it. */
  async read(): Promise<T | undefined> {
    const { cacheMs, timeoutMs } = this.limits
    if (this.#last && performance.now() - this.#last.atMs < cacheMs) return this.#last.value
    this.#running ??= this.#run()
    const timer = new AbortController()
    const timeout = sleep(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined)
    const value = await Promise.race([this.#running, timeout])
    timer.abort()
    return value
  }

  async #run(): Promise<T | undefined> {
    try {
      const value = await this.measure()
      this.#last = { atMs: performance.now(), value }
      return value
    } catch {
      // The log has the reason: the requests of clients fail, too.
      return undefined
    } finally {
      this.#running = undefined
    }
  }
}
