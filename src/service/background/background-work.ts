// Shared by the work that runs beside requests: delivery of webhooks, hooks after the commit, and schedules.
import { setTimeout as sleep } from 'node:timers/promises'

const MIN_BACKOFF_MS = 1_000
const MAX_BACKOFF_MS = 60 * 60_000
/** During shutdown, work in progress has this time to finish. */
const SHUTDOWN_GRACE_MS = 3_000
/** The interval at which background work looks at the database: for leases, and for retries that are due. */
export const BACKGROUND_POLL_MS = 1_000
/** A node that does not renew its lease for this long has died. Another node takes over. */
export const LEASE_MS = 10_000
export const LEASE_RENEWAL_MS = 3_000

/** Exponential backoff with jitter after consecutive failures. */
export function computeBackoff(failures: number, random = Math.random()): number {
  const doubled = MIN_BACKOFF_MS * 2 ** Math.min(failures - 1, 30)
  return Math.round(Math.min(MAX_BACKOFF_MS, doubled) * (0.75 + random / 4))
}

/** Resolves after `ms`, or when the signal aborts. */
export async function sleepUnlessStopped(ms: number, stopping: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stopping }).catch(() => undefined)
}

/** Runs the work for all items, at most `limit` at the same time. Fails after all have ended, with the first error. */
export async function runConcurrently<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values()
  const lanes = Array.from({ length: Math.min(limit, items.length) }, async () => {
    for (const item of left) await work(item)
  })
  for (const lane of await Promise.allSettled(lanes)) if (lane.status === 'rejected') throw lane.reason
}

/** Resolves when the work in progress has ended. Aborts it after a short time. */
export async function finishOrAbort(work: Iterable<Promise<unknown>>, abort: AbortController): Promise<void> {
  const grace = setTimeout(() => {
    abort.abort()
  }, SHUTDOWN_GRACE_MS)
  try {
    await Promise.all(work)
  } finally {
    clearTimeout(grace)
  }
}

/** Runs a work at most once at a time, and once more if it was requested meanwhile. */
export class SingleFlight {
  #running: Promise<void> | undefined
  #isRequested = false

  /** The work handles its own errors. */
  constructor(private readonly work: () => Promise<void>) {}

  request(): void {
    this.#isRequested = true
    this.#running ??= this.#runWhileRequested()
  }

  /** Resolves after the current run, and without one at once. */
  async finish(): Promise<void> {
    await this.#running
  }

  async #runWhileRequested(): Promise<void> {
    while (this.#isRequested) {
      this.#isRequested = false
      await this.work()
    }
    // In the same tick as the end of the loop: a later request must start a new run.
    this.#running = undefined
  }
}
