// Notices a full disk of the server, and that it has room again. A proxy may send no writes here until then, so a small transaction tests it.
import { randomBytes } from 'node:crypto'
import type { Transaction } from '../engine/database.js'
import type { WriteHealth } from '../engine/write-health.js'
import { PostgresFailure } from './errors.js'
import type { TransactionTimeouts } from './statements.js'

/** A full disk may accept small writes. So a commit proves nothing until this long after the last rejected write. */
const QUIET_MS = 10_000
const TEST_INTERVAL_MS = 2_000
const TEST_ROWS = 1_000
/** Shorter than the texts that PostgreSQL compresses. */
const TEST_ROW_BYTES = 1_000
const TEST_TIMEOUT_MS = 5_000

type RunTransaction = (
  work: (tx: Transaction) => Promise<never>,
  timeouts: TransactionTimeouts,
) => Promise<unknown>

/** Rolls a test back that has succeeded. */
class RoomFound extends Error {}

export class DiskRoom {
  #rejectedAtMs = -Infinity
  #testedAtMs = -Infinity

  constructor(
    private readonly writeHealth: WriteHealth,
    private readonly runTransaction: RunTransaction,
  ) {}

  /** Must be called after a write that the server has rejected because of its disk. */
  reportFull(error: unknown): void {
    this.#rejectedAtMs = performance.now()
    this.writeHealth.report('full', error)
  }

  /** Must be called after each commit. */
  reportCommit(): void {
    if (this.#isFull && performance.now() - this.#rejectedAtMs > QUIET_MS) this.writeHealth.clear('full')
  }

  /** While the disk counts as full, tests from time to time if it has room. */
  async test(): Promise<void> {
    if (!this.#isFull || performance.now() - this.#testedAtMs < TEST_INTERVAL_MS) return
    this.#testedAtMs = performance.now()
    try {
      await this.runTransaction(fillTable, { statementMs: TEST_TIMEOUT_MS })
    } catch (error) {
      // A role that may not create tables cannot test. The next write does.
      const isForbidden = error instanceof PostgresFailure && error.isForbidden
      if (error instanceof RoomFound || isForbidden) this.writeHealth.clear('full')
    }
  }

  get #isFull(): boolean {
    return this.writeHealth.unwritable?.kind === 'full'
  }
}

/** Unlogged, so that the rows are not written to the WAL as well. */
async function fillTable(tx: Transaction): Promise<never> {
  const table = `verso_room_${randomBytes(8).toString('hex')}`
  await tx.run(`create unlogged table ${table} (content text)`)
  await tx.run(
    `insert into ${table} select repeat('x', ${TEST_ROW_BYTES}) from generate_series(1, ${TEST_ROWS})`,
  )
  throw new RoomFound()
}
