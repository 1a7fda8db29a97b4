// The time of a reference clock between two readings of it, by the monotonic clock of this process.

import type { Clock } from '../context/app.js'

/** The reference clock showed `referenceMs` at some moment between `sentAtMs` and `receivedAtMs`, which are times of the monotonic clock. */
export interface ClockReading {
  readonly referenceMs: number
  readonly sentAtMs: number
  readonly receivedAtMs: number
}

export interface SteadyClockOptions {
  /** The first time is not before this one. */
  readonly floorMs?: number
  /** If the reference steps back further than this, the clock follows it. */
  readonly maxLeadMs: number
  /** The monotonic clock. */
  readonly elapsed: () => number
}

/** Two clocks drift apart by at most this fraction of the time. */
const MAX_DRIFT = 0.000_2
/** While this clock is ahead of its reference, it runs at this speed. */
const CATCH_UP_SPEED = 0.5

/**
 * Never goes back. If its reference steps back, the clock runs at half speed until the reference has caught up. It does not stand still,
 * because sessions and leases must expire.
 */
export class SteadyClock implements Clock {
  /** The time of the reference minus that of the monotonic clock. */
  #offsetMs: number
  /** The offset was exact to this many milliseconds when it was measured. */
  #errorMs: number
  #measuredAtMs: number
  /** How far this clock was ahead of the reference at `#leadAtMs`. */
  #leadMs = 0
  #leadAtMs: number

  constructor(
    first: ClockReading,
    private readonly options: SteadyClockOptions,
  ) {
    this.#offsetMs = computeOffset(first)
    this.#errorMs = computeError(first)
    this.#measuredAtMs = first.receivedAtMs
    this.#leadAtMs = options.elapsed()
    this.#startLead((options.floorMs ?? -Infinity) - this.referenceMs)
  }

  /** The time of the reference. */
  get referenceMs(): number {
    return this.options.elapsed() + this.#offsetMs
  }

  now(): number {
    return Math.floor(this.#nowMs)
  }

  get #nowMs(): number {
    const elapsedMs = this.options.elapsed()
    const caughtUpMs = (elapsedMs - this.#leadAtMs) * (1 - CATCH_UP_SPEED)
    return elapsedMs + this.#offsetMs + Math.max(0, this.#leadMs - caughtUpMs)
  }

  update(reading: ClockReading): void {
    const before = this.#nowMs
    this.#adopt(reading)
    this.#startLead(before - this.referenceMs)
  }

  /** Adopts the reading if it is more exact than the known offset. Otherwise it only limits that offset. */
  #adopt(reading: ClockReading): void {
    const [offset, error] = [computeOffset(reading), computeError(reading)]
    const knownError = this.#errorMs + (reading.receivedAtMs - this.#measuredAtMs) * MAX_DRIFT
    const isBetter = error <= knownError
    const limited = Math.min(Math.max(this.#offsetMs, offset - error), offset + error)
    this.#errorMs = isBetter || limited !== this.#offsetMs ? error : knownError
    this.#offsetMs = isBetter ? offset : limited
    this.#measuredAtMs = reading.receivedAtMs
  }

  #startLead(leadMs: number): void {
    this.#leadAtMs = this.options.elapsed()
    this.#leadMs = leadMs > this.options.maxLeadMs ? 0 : Math.max(0, leadMs)
  }
}

function computeOffset({ referenceMs, sentAtMs, receivedAtMs }: ClockReading): number {
  return referenceMs - (sentAtMs + receivedAtMs) / 2
}

/** Half of the round trip. */
export function computeError({ sentAtMs, receivedAtMs }: ClockReading): number {
  return (receivedAtMs - sentAtMs) / 2
}
