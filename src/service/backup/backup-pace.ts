// Makes a backup pause for about half of the time while other clients write, so that their requests rarely wait for it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../store/engine/database.js'
import { readLastSeq } from '../../store/log/feed.js'

const CHECK_INTERVAL_MS = 500
/** A page may have taken long because others had the processor. */
const MAX_PAUSE_MS = 50

export class BackupPace {
  /** How long the backup has paused in all. */
  pausedMs = 0
  #resumedMs = performance.now()
  #checkedMs = -Infinity
  #lastSeq: number | undefined
  #hasWriters = false

  constructor(private readonly db: Database) {}

  /** Must be called between two parts of the work. Pauses as long as the earlier one took. */
  async pause(): Promise<void> {
    await this.#checkWriters()
    if (this.#hasWriters) {
      const pauseMs = Math.min(MAX_PAUSE_MS, performance.now() - this.#resumedMs)
      this.pausedMs += pauseMs
      await sleep(pauseMs)
    }
    this.#resumedMs = performance.now()
  }

  async #checkWriters(): Promise<void> {
    if (performance.now() - this.#checkedMs < CHECK_INTERVAL_MS) return
    const seq = await readLastSeq(this.db.reader)
    this.#hasWriters = this.#lastSeq !== undefined && seq > this.#lastSeq
    this.#lastSeq = seq
    this.#checkedMs = performance.now()
  }
}
