// The leases under which this node works: one token for all of them, renewed together.
import { randomUUID } from 'node:crypto'
import { summarizeError } from '../../errors.js'
import { releaseLeases, renewLeases, type LeasedTable } from '../../store/hooks/leases.js'
import type { App } from '../context/app.js'
import { BACKGROUND_POLL_MS, LEASE_MS, LEASE_RENEWAL_MS, sleepUnlessStopped } from './background-work.js'

/** The first pause before a result is stored again. Later ones are longer. */
const STORE_RETRY_MS = 50

export interface Renewal {
  /** The names of the leases that this node still has. */
  readonly held: ReadonlySet<string>
  readonly untilMs: number
}

export class NodeLeases {
  readonly token = randomUUID()
  #renewedAtMs = 0

  constructor(
    private readonly app: App,
    readonly table: LeasedTable,
  ) {}

  /** Renews the leases of the work in progress from time to time. Returns undefined if it is too early. */
  async renew(names: readonly string[]): Promise<Renewal | undefined> {
    if (names.length === 0 || performance.now() - this.#renewedAtMs < LEASE_RENEWAL_MS) return undefined
    const { db, clock } = this.app
    const untilMs = clock.now() + LEASE_MS
    const held = await db.transaction((tx) => renewLeases(tx, db.dialect, this, { names, untilMs }))
    this.#renewedAtMs = performance.now()
    return { held, untilMs }
  }

  /** Releases all leases of this node. */
  async release(): Promise<void> {
    try {
      await this.app.db.transaction((tx) => releaseLeases(tx, this.table, this.token))
    } catch (error) {
      // The leases expire soon.
      this.app.log.warn(summarizeError(error), 'could not release leases; they expire in a few seconds')
    }
  }
}

/**
 * Stores the result of a run, and tries until it succeeds: a run whose result is not stored would be repeated. Returns undefined if the
 * signal ends the attempts.
 */
export async function storeResult<T>(
  store: () => Promise<T>,
  abort: AbortSignal,
  onFirstError: (error: unknown) => void,
): Promise<T | undefined> {
  for (let pauseMs = STORE_RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, BACKGROUND_POLL_MS)) {
    try {
      return await store()
    } catch (error) {
      if (pauseMs === STORE_RETRY_MS) onFirstError(error)
      await sleepUnlessStopped(pauseMs, abort)
      if (abort.aborted) return undefined
    }
  }
}
