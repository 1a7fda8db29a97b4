// Decides when a queue in front of the database is too long for more requests.
import type { WaitingCalls } from './measures.js'

/** A queue is too long when its first call has waited this many times the maximum delay. It is more than one because a statement may wait for a lock. */
const LONG_DELAYS = 5
const MIN_LONG_MS = 500
/** Under overload, the queue holds what the database finishes in this part of the maximum delay: a request may wait in it several times. */
const QUEUED_PER_DELAY = 0.4
/** A shorter queue is never too long: each of its calls may take long. */
const MIN_WAITING = 16
/** How often the speed of the queue is measured, and how far one measurement moves it. */
const MEASURE_MS = 50
const LEARNING_RATE = 0.3
/** After this time without a refused request the overload is over. */
const CALM_MS = 1_000

/** While the queue is too long, it takes as many requests as the database finishes soon. */
export class QueueLimit {
  #isOverloaded = false
  #turnMs = 0
  #room = Infinity
  #longFromMs: number | undefined
  #lastRefusedMs = 0
  #perMs: number | undefined
  #accepted = 0
  #measured = { count: 0, atMs: 0 }

  constructor(private readonly maxDelayMs: number) {}

  /** Call it before the requests of a turn of the event loop. */
  startTurn({ count, sinceMs }: WaitingCalls, nowMs: number): void {
    this.#turnMs = nowMs
    this.#measure(count, nowMs)
    if (this.#isOverloaded) this.#isOverloaded = nowMs - this.#lastRefusedMs <= CALM_MS
    else this.#watch(count >= MIN_WAITING && nowMs - sinceMs > this.maxDelayMs * LONG_DELAYS, nowMs)
    const maxWaiting = Math.max(MIN_WAITING, (this.#perMs ?? 0) * this.maxDelayMs * QUEUED_PER_DELAY)
    this.#room = this.#isOverloaded ? maxWaiting - count : Infinity
  }

  /** Returns false if a request must be refused. */
  hasRoom(): boolean {
    if (this.#room > 0) return true
    this.#lastRefusedMs = this.#turnMs
    return false
  }

  /** Call it for each request that was accepted. */
  add(): void {
    this.#room--
    this.#accepted++
  }

  #watch(isLong: boolean, nowMs: number): void {
    this.#longFromMs = isLong ? (this.#longFromMs ?? nowMs) : undefined
    if (this.#longFromMs === undefined || nowMs - this.#longFromMs < MIN_LONG_MS) return
    this.#isOverloaded = true
    this.#lastRefusedMs = nowMs
    this.#longFromMs = undefined
  }

  /** The database has taken the accepted requests that do not wait. Its speed shows only while the queue is not empty. */
  #measure(count: number, nowMs: number): void {
    const ms = nowMs - this.#measured.atMs
    if (ms < MEASURE_MS) return
    if (Math.min(count, this.#measured.count) >= MIN_WAITING) {
      const perMs = Math.max(0, this.#accepted + this.#measured.count - count) / ms
      this.#perMs = this.#perMs === undefined ? perMs : this.#perMs + LEARNING_RATE * (perMs - this.#perMs)
    }
    this.#accepted = 0
    this.#measured = { count, atMs: nowMs }
  }
}
